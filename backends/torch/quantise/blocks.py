"""Blocks of numbers that share one scale.

Numbers are a matrix of rows x k whose last axis, K, is the one that a product sums over: A as m x k, B as n x k, the way a
Linear layer stores its weight.  A block covers consecutive rows and consecutive numbers along K; the scale of block (i, j) is
element (i, j) of a contiguous matrix.  The last rows may fall short of a block (DeepSeek-V3 has weights of 576 rows in blocks
of 128); K never does.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch


class Block(NamedTuple):
    """``rows`` x ``k`` numbers; 0 stands for all there are."""

    rows: int
    k: int

    @property
    def name(self) -> str:
        return {(0, 0): "tensor", (1, 0): "row"}.get(self, f"{self.rows}x{self.k}")

    def grid(self, rows: int, k: int) -> tuple[int, int]:
        """How many blocks a matrix has along its rows and along K."""
        return -(-rows // (self.rows or rows)), -(-k // (self.k or k))


TENSOR = Block(0, 0)
ROW = Block(1, 0)
ROW_128 = Block(1, 128)
SQUARE_128 = Block(128, 128)


class Extremes(NamedTuple):
    """The smallest and the largest number of each block, in float64; NaN where the block has one."""

    low: torch.Tensor
    high: torch.Tensor

    @property
    def magnitude(self) -> torch.Tensor:
        return torch.maximum(self.low.abs(), self.high.abs())


class Span(NamedTuple):
    """Consecutive rows or columns."""

    start: int
    stop: int


def spans(total: int, unit: int, most: int) -> Iterator[Span]:
    """Cut ``total`` into spans of whole units, of at most ``most`` where a unit allows."""
    length = max(1, most // unit) * unit
    return (Span(start, min(start + length, total)) for start in range(0, total, length))


def blocked(matrix: torch.Tensor, block: Block) -> torch.Tensor:
    """A matrix as (blocks along rows, rows, blocks along K, numbers along K); missing last rows are zeros."""
    rows, k = matrix.shape
    height, width = block.rows or rows, block.k or k
    if rows % height:
        matrix = torch.nn.functional.pad(matrix, (0, 0, 0, height - rows % height))
    return matrix.reshape(-1, height, k // width, width)


def extremes(matrix: torch.Tensor, block: Block) -> Extremes:
    """Of every block of a float matrix."""
    blocks = blocked(matrix, block)
    return Extremes(blocks.amin((1, 3)).to(torch.float64), blocks.amax((1, 3)).to(torch.float64))


def spread(per_block: torch.Tensor) -> torch.Tensor:
    """A matrix of one figure a block, shaped to be broadcast over ``blocked``."""
    return per_block[:, None, :, None]
