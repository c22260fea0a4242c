"""How long a test waits for what comes unless something hangs: no test passes sooner or later for it."""

# A shared host takes ten times as long as a quick one, and what a test waits for waits for other tests in its turn.
PATIENCE_S = 120.0
