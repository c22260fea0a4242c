"""Inputs of a stated distribution, drawn on the device from a seed.

Values are drawn in float32 (float64 for float64 operands) and rounded to the operand's type.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from backends.distributions import CONSTANT, INT8_FACTOR, INT8_MAX, OUTLIER_FACTOR, OUTLIER_SHARE

Draw = Callable[[jax.Array, tuple[int, ...], jnp.dtype], jax.Array]


def _outliers(key: jax.Array, shape: tuple[int, ...], dtype: jnp.dtype) -> jax.Array:
    values, chance = jax.random.split(key)
    far = jax.random.uniform(chance, shape) < OUTLIER_SHARE
    return jax.random.normal(values, shape, dtype) * jnp.where(far, OUTLIER_FACTOR, 1.0).astype(dtype)


DISTRIBUTIONS: dict[str, Draw] = {
    "normal": jax.random.normal,
    "uniform": lambda key, shape, dtype: jax.random.uniform(key, shape, dtype, -1.0, 1.0),
    "integer": lambda key, shape, dtype: jax.random.randint(key, shape, -1, 2).astype(dtype),
    "zeros": lambda key, shape, dtype: jnp.zeros(shape, dtype),
    "constant": lambda key, shape, dtype: jnp.full(shape, CONSTANT, dtype),
    "outliers": _outliers,
}


class Operand(NamedTuple):
    """One input as it is stored, and the float32 scale (0-d) that fp8 numbers carry."""

    data: jax.Array
    scale: jax.Array | None = None


def drawn(shape: tuple[int, ...], dtype: jnp.dtype, distribution: str, seed: int) -> Operand:
    """Fresh numbers on the default device."""
    operand: Operand = _drawn(jax.random.key(seed), shape=shape, dtype=jnp.dtype(dtype), distribution=distribution)
    return operand


@partial(jax.jit, static_argnames=("shape", "dtype", "distribution"))
def _drawn(key: jax.Array, *, shape: tuple[int, ...], dtype: jnp.dtype, distribution: str) -> Operand:
    wide = jnp.dtype(jnp.float64 if dtype == jnp.float64 else jnp.float32)
    values = DISTRIBUTIONS[distribution](key, shape, wide)
    if dtype == jnp.int8:
        return Operand(jnp.clip(jnp.round(values * INT8_FACTOR[distribution]), -INT8_MAX, INT8_MAX).astype(dtype))
    if jnp.finfo(dtype).bits > 8:
        return Operand(values.astype(dtype))
    # One scale carries the largest magnitude to the format's largest number.
    limit = float(jnp.finfo(dtype).max)
    largest = jnp.max(jnp.abs(values))
    scale = jnp.where(largest > 0, largest / limit, 1.0).astype(jnp.float32)
    return Operand(jnp.clip(values / scale, -limit, limit).astype(dtype), scale)
