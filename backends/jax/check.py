"""What a check sees of an output, in NumPy on the host: what judges a device's product is none of its own.

Outputs are matrices (rows x columns).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from backends.jax.widening import row_blocks, times, wide
from suite.backend import Observed, Probe


class Poison(NamedTuple):
    """A bit pattern that no correct result holds, seen through the integer type of the same width."""

    bits: int
    view: Any


# Floats: a quiet NaN with a payload that arithmetic does not produce.  int32: the smallest number, out of reach of int8
# products for any K below 133,000.
POISON = {
    "float64": Poison(0x7FF85EED5EED5EED, np.int64),
    "float32": Poison(0x7FC5EED5, np.int32),
    "bfloat16": Poison(0x7FD5, np.int16),
    "float16": Poison(0x7E55, np.int16),
    "int32": Poison(-(2**31), np.int32),
}


def poisoned(shape: tuple[int, ...], dtype: Any) -> jax.Array:
    """A new array that holds nothing but poison."""
    array: jax.Array = _poisoned(shape=shape, dtype=jnp.dtype(dtype))
    return array


@partial(jax.jit, static_argnames=("shape", "dtype"))
def _poisoned(*, shape: tuple[int, ...], dtype: jnp.dtype) -> jax.Array:
    """In one program: by itself each step holds what it makes and what it was given."""
    pattern = POISON[jnp.dtype(dtype).name]
    return jax.lax.bitcast_convert_type(jnp.full(shape, pattern.bits, pattern.view), dtype)


def observe(output: jax.Array, probe: Probe) -> Observed:
    """Reduce one output to what a check needs; waits for the device."""
    stored = np.asarray(output)
    projection = times(stored, sign_vector(stored.shape[1], probe.seed))
    tiles = tuple(wide(stored[row : row + rows, column : column + columns]) for row, column, rows, columns in probe.tiles)
    unwritten, nonfinite = _faults(stored, projection)
    return Observed(tiles, unwritten, nonfinite, projection)


def sign_vector(length: int, seed: int) -> NDArray[np.float64]:
    """A random vector of +1 and -1; the same one for an output and for its reference."""
    return np.random.default_rng([seed, length]).integers(0, 2, length).astype(np.float64) * 2 - 1


def _faults(stored: NDArray[Any], projection: NDArray[np.float64]) -> tuple[int, int]:
    """Count elements that still hold the poison, and other NaN and Inf; only rows whose projection shows any are looked at.

    Integers have no NaN, so all of them are compared.
    """
    pattern = POISON[stored.dtype.name]
    floating = stored.dtype.name != "int32"
    suspects = stored[~np.isfinite(projection)] if floating else stored
    unwritten = nonfinite = 0
    for rows in row_blocks(suspects):
        block = suspects[rows]
        untouched = block.view(pattern.view) == pattern.bits
        unwritten += int(untouched.sum())
        if floating:
            nonfinite += int((~np.isfinite(wide(block)) & ~untouched).sum())
    return unwritten, nonfinite
