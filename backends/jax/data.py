"""Inputs of a stated distribution, drawn on the device from a seed.

Values are drawn in float32 (float64 for float64 operands) and rounded to the operand's type, block by block in one program and
each block from a key of its own: what drawing takes beside the operand stays bounded whatever the operand's size.
"""

import gc
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from backends.distributions import CONSTANT, INT8_FACTOR, INT8_MAX, OUTLIER_FACTOR, OUTLIER_SHARE

BLOCK_ELEMENTS = 1 << 20  # drawn at a time: XLA keeps several arrays of that size on a CPU while it makes one
# For each block that is written into an array of these, XLA on a CPU converts all of it to a wider type and back.
WIDENED_ON_A_CPU = (jnp.dtype(jnp.bfloat16), jnp.dtype(jnp.float8_e4m3fn))

Draw = Callable[[jax.Array, tuple[int, ...], jnp.dtype], jax.Array]


def _outliers(key: jax.Array, shape: tuple[int, ...], dtype: jnp.dtype) -> jax.Array:
    values, chance = jax.random.split(key)
    far = jax.random.uniform(chance, shape, jnp.float32) < OUTLIER_SHARE
    return jax.random.normal(values, shape, dtype) * jnp.where(far, OUTLIER_FACTOR, 1.0).astype(dtype)


DISTRIBUTIONS: dict[str, Draw] = {
    "normal": jax.random.normal,
    "uniform": lambda key, shape, dtype: jax.random.uniform(key, shape, dtype, -1.0, 1.0),
    "integer": lambda key, shape, dtype: jax.random.randint(key, shape, -1, 2, jnp.int32).astype(dtype),
    "zeros": lambda key, shape, dtype: jnp.zeros(shape, dtype),
    "constant": lambda key, shape, dtype: jnp.full(shape, CONSTANT, dtype),
    "outliers": _outliers,
}


class Operand(NamedTuple):
    """One input as it is stored, and the float32 scale (0-d) that fp8 numbers carry."""

    data: jax.Array
    scale: jax.Array | None = None


Window = tuple[tuple[int, int], tuple[int, int]]


class Blocks(NamedTuple):
    """A matrix cut into blocks of one size (height x width), which one loop draws.

    The last block of a row or column ends with the matrix: where it overlaps with the one before it, its numbers stand.
    """

    rows: int
    columns: int
    height: int
    width: int

    @classmethod
    def of(cls, shape: tuple[int, ...]) -> "Blocks":
        """Of an array taken as a matrix: its last axis lies along a row."""
        rows, columns = math.prod(shape[:-1]), math.prod(shape[-1:])
        width = min(columns, BLOCK_ELEMENTS)
        return cls(rows, columns, min(rows, max(1, BLOCK_ELEMENTS // max(1, width))), width)

    @property
    def across(self) -> int:
        return -(-self.columns // max(1, self.width))

    @property
    def number(self) -> int:
        return -(-self.rows // max(1, self.height)) * self.across

    def line(self, row: int) -> int:
        """The row of blocks whose numbers stand in a row."""
        return (self.number // self.across - 1) if row >= self.rows - self.height else row // self.height

    def corner(self, block: Any) -> tuple[Any, Any]:
        """The first row and column of a block."""
        row, column = block // self.across * self.height, block % self.across * self.width
        return jnp.minimum(row, self.rows - self.height), jnp.minimum(column, self.columns - self.width)

    def standing(self, block: Any) -> jax.Array:
        """Which numbers of a block no later one writes over (height x width)."""
        row, column = self.corner(block)
        below = jnp.where(row + self.height < self.rows, self.rows - self.height, self.rows)
        right = jnp.where(column + self.width < self.columns, self.columns - self.width, self.columns)
        rows, columns = row + jnp.arange(self.height), column + jnp.arange(self.width)
        return (rows < below)[:, None] & (columns < right)


def drawn(shape: tuple[int, ...], dtype: jnp.dtype, distribution: str, seed: int) -> Operand:
    """Fresh numbers on the default device."""
    dtype = jnp.dtype(dtype)
    as_bits = written_as(dtype) != dtype
    operand: Operand = _drawn(jax.random.key(seed), shape=shape, dtype=dtype, distribution=distribution, as_bits=as_bits)
    return operand._replace(data=viewed(operand.data, dtype))


def written_as(dtype: jnp.dtype) -> jnp.dtype:
    """The type in which an array on the default device is written part by part: its own, or that of its bits."""
    on_cpu = all(device.platform == "cpu" for device in jnp.zeros(()).devices())
    if not (on_cpu and jnp.dtype(dtype) in WIDENED_ON_A_CPU):
        return jnp.dtype(dtype)
    give_back()
    return _bits_of(jnp.dtype(dtype))


def viewed(array: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """What was ``written_as`` bits as numbers, in the same memory: a program that converts would hold both."""
    if array.dtype == dtype:
        return array
    seen: jax.Array = jax.device_put(np.asarray(array).view(dtype), may_alias=True)
    return seen


def give_back() -> None:
    """Free what dropped operands held: memory of a host that is seen as another type waits for Python to collect garbage."""
    gc.collect(0)


def windows(shape: tuple[int, int], distribution: str, seed: int, asked: Sequence[Window]) -> list[jax.Array]:
    """Parts of the numbers that ``drawn`` rounds, in float32, each by its rows and columns from and to."""
    blocks, key, parts = Blocks.of(shape), jax.random.key(seed), []
    for (first, end), (left, right) in asked:
        lines = blocks.line(first), blocks.line(end - 1) + 1
        size = (end - first, right - left)
        parts.append(_window(key, lines, (first, left), blocks=blocks, size=size, distribution=distribution))
    return parts


@partial(jax.jit, static_argnames=("shape", "dtype", "distribution", "as_bits"))
def _drawn(key: jax.Array, *, shape: tuple[int, ...], dtype: jnp.dtype, distribution: str, as_bits: bool) -> Operand:
    """Numbers of ``dtype``, or the unsigned integers of their bits."""
    blocks, stored = Blocks.of(shape), _bits_of(dtype) if as_bits else dtype
    draw = partial(_block, key, blocks, distribution, jnp.dtype(jnp.float64 if dtype == jnp.float64 else jnp.float32))
    scale = _scale(blocks, draw, float(jnp.finfo(dtype).max)) if _is_scaled(dtype) else None

    def write(block: Any, data: jax.Array) -> jax.Array:
        numbers = _rounded(draw(block), dtype, distribution, scale)
        part = lax.bitcast_convert_type(numbers, stored) if as_bits else numbers
        return lax.dynamic_update_slice(data, part, blocks.corner(block))

    data = lax.fori_loop(0, blocks.number, write, jnp.zeros((blocks.rows, blocks.columns), stored))
    return Operand(data.reshape(shape), scale)


@partial(jax.jit, static_argnames=("blocks", "size", "distribution"))
def _window(
    key: jax.Array, lines: tuple[Any, Any], corner: tuple[Any, Any], *, blocks: Blocks, size: tuple[int, int], distribution: str
) -> jax.Array:
    """A window from its corner on, out of some rows of blocks; one program for all windows of a size."""
    rows, columns = (start + jnp.arange(length) for start, length in zip(corner, size, strict=True))

    def copy(block: Any, part: jax.Array) -> jax.Array:
        row, column = blocks.corner(block)
        at, along = rows - row, columns - column
        here = ((at >= 0) & (at < blocks.height))[:, None] & ((along >= 0) & (along < blocks.width))
        numbers = _block(key, blocks, distribution, jnp.dtype(jnp.float32), block)
        return jnp.where(here, numbers[jnp.clip(at, 0, blocks.height - 1)][:, jnp.clip(along, 0, blocks.width - 1)], part)

    first, end = (line * blocks.across for line in lines)
    part: jax.Array = lax.fori_loop(first, end, copy, jnp.zeros(size, jnp.float32))
    return part


def _block(key: jax.Array, blocks: Blocks, distribution: str, dtype: jnp.dtype, block: Any) -> jax.Array:
    return DISTRIBUTIONS[distribution](jax.random.fold_in(key, block), (blocks.height, blocks.width), dtype)


def _is_scaled(dtype: jnp.dtype) -> bool:
    return jnp.issubdtype(dtype, jnp.floating) and jnp.finfo(dtype).bits <= 8


def _scale(blocks: Blocks, draw: Callable[[Any], jax.Array], limit: float) -> jax.Array:
    """What carries the largest magnitude to the format's largest number; every number is drawn for it, and once more after."""

    def larger(block: Any, largest: jax.Array) -> jax.Array:
        return jnp.maximum(largest, jnp.max(jnp.where(blocks.standing(block), jnp.abs(draw(block)), 0)))

    largest = lax.fori_loop(0, blocks.number, larger, jnp.zeros((), jnp.float32))
    return jnp.where(largest > 0, largest / limit, 1.0).astype(jnp.float32)


def _rounded(values: jax.Array, dtype: jnp.dtype, distribution: str, scale: jax.Array | None) -> jax.Array:
    if dtype == jnp.int8:
        return jnp.clip(jnp.round(values * INT8_FACTOR[distribution]), -INT8_MAX, INT8_MAX).astype(dtype)
    if scale is None:
        return values.astype(dtype)
    limit = float(jnp.finfo(dtype).max)
    return jnp.clip(values / scale, -limit, limit).astype(dtype)


def _bits_of(dtype: jnp.dtype) -> jnp.dtype:
    return jnp.dtype(f"uint{8 * dtype.itemsize}")
