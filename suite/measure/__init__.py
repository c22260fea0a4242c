"""The measuring room: regimes, the spine, stopping, statistics and checks."""
