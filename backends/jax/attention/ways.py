"""The implementations of the attention job through XLA, by name."""

from backends.jax.attention import flash, library, naive
from backends.jax.attention.way import Way

WAYS: dict[str, Way] = {
    "naive": naive.WAY,
    "library_math": library.MATH,
    "library_cudnn": library.CUDNN,
    "library_flash": flash.WAY,
}
