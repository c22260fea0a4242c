"""The implementations of the decode job through XLA, by name."""

from backends.jax.decode import naive, paged
from backends.jax.decode.way import Way

WAYS: dict[str, Way] = {"naive": naive.WAY, "library_flash": paged.WAY}
