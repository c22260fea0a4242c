"""In which order an attention's operands lie in memory, and which rows of the output are whose."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suite.jobs.attention import Sizes

Shape = tuple[int, int, int, int]


class Layout(NamedTuple):
    """The order of an operand's four axes; ``heads_axis`` is 1 or 2, and rows are the other."""

    name: str
    heads_axis: int

    def shape(self, batch: int, heads: int, rows: int, columns: int) -> Shape:
        return (batch, heads, rows, columns) if self.heads_axis == 1 else (batch, rows, heads, columns)

    def head(self, array: NDArray[Any], batch: int, head: int) -> NDArray[Any]:
        """One head of one sequence (rows x columns)."""
        return array[batch, head] if self.heads_axis == 1 else array[batch, :, head]

    def numbers(self, shape: Shape, batch: int, head: int) -> range:
        """Which rows of such an array, taken as a matrix of its columns, are one head of one sequence."""
        rows = shape[3 - self.heads_axis]
        apart = 1 if self.heads_axis == 1 else shape[2]
        first = batch * shape[1] * shape[2] + head * (rows if self.heads_axis == 1 else 1)
        return range(first, first + rows * apart, apart)


HEADS_FIRST = Layout("batch, heads, rows, columns", 1)
ROWS_FIRST = Layout("batch, rows, heads, columns", 2)


def shapes_of(sizes: Sizes, layout: Layout) -> dict[str, Shape]:
    """Of Q, K, V and O; a gradient has the shape of what it is of."""
    queries, keys = (sizes.batch, sizes.num_q_heads, sizes.q_len), (sizes.batch, sizes.num_kv_heads, sizes.kv_len)
    return {
        "q": layout.shape(*queries, sizes.head_dim),
        "k": layout.shape(*keys, sizes.head_dim),
        "v": layout.shape(*keys, sizes.v_head_dim),
        "o": layout.shape(*queries, sizes.v_head_dim),
    }


def operand_names(sizes: Sizes) -> tuple[str, ...]:
    """What a launch is given, in order; the last of a backward pass is the gradient of O, of its shape."""
    return ("q", "k", "v", "o") if sizes.is_backward else ("q", "k", "v")


def result_names(sizes: Sizes) -> tuple[str, ...]:
    """What is written, in order: O, or a gradient for each of Q, K and V."""
    return ("q", "k", "v") if sizes.is_backward else ("o",)


def width_of(sizes: Sizes) -> int:
    """Columns of the output as a matrix: those of O; of gradients the largest number that divides every row of theirs."""
    return math.gcd(sizes.head_dim, sizes.v_head_dim) if sizes.is_backward else sizes.v_head_dim


def output_shape(sizes: Sizes, layout: Layout) -> tuple[int, int]:
    """Rows and columns of what is written, as one matrix."""
    shapes, width = shapes_of(sizes, layout), width_of(sizes)
    return sum(math.prod(shapes[name]) for name in result_names(sizes)) // width, width


def places_of(sizes: Sizes, layout: Layout) -> dict[str, NDArray[np.int64]]:
    """Of each result the rows of the output that hold it, in its own order of axes; of its columns what fills a row each."""
    shapes, width, found, start = shapes_of(sizes, layout), width_of(sizes), {}, 0
    for name in result_names(sizes):
        *outer, columns = shapes[name]
        count = math.prod(outer) * columns // width
        found[name] = np.arange(start, start + count, dtype=np.int64).reshape(*outer, columns // width)
        start += count
    return found
