"""What a grouped product should be: in float64, group by group, of the operands as they are stored."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from backends.torch.data import Operand
from backends.torch.gemm.product import rows_of
from suite.jobs.grouped_gemm import Sizes

CHUNK_ELEMENTS = 1 << 22  # of an operand in float64 at a time


class Group(NamedTuple):
    """Rows ``first`` to ``last`` of A and C, and which B they are multiplied by."""

    number: int
    first: int
    last: int


def groups_of(sizes: Sizes) -> Iterator[Group]:
    """Those that have rows, in order."""
    first = 0
    for number, last in enumerate(sizes.ends):
        if last > first:
            yield Group(number, first, last)
        first = last


class GroupedProduct:
    """The contract ``backends.torch.kernel.Formula``.

    Groups are taken from the sizes and not from the buffer that says where they end: a kernel that destroys it is not right.
    Tiles are multiplied on the host: what judges a device's matrix product must not be another of its matrix products.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._n, self._groups = sizes.n, tuple(groups_of(sizes))

    def tile(self, operands: Sequence[Operand], row: int, column: int, rows: int, columns: int) -> torch.Tensor:
        a, b = operands[:2]
        parts = []
        for number, group_first, group_last in self._groups:
            first, last = max(row, group_first), min(row + rows, group_last)
            if first < last:
                b_first = number * self._n + column
                parts.append(rows_of(a, False, first, last) @ rows_of(b, False, b_first, b_first + columns).t())
        return torch.cat(parts)

    def project(self, operands: Sequence[Operand], vector: torch.Tensor) -> torch.Tensor:
        a, b = operands[:2]
        projections = []
        for number, first, last in self._groups:
            b_vector = _summed(b, number * self._n, vector)
            projections += [torch.mv(a.numbers(*span), b_vector) for span in _spans(first, last, len(b_vector))]
        return torch.cat(projections)

    def expected_size(self, operands: Sequence[Operand], rows: int, columns: int) -> float:
        """Over all groups alike: their numbers are of one distribution."""
        a, b = operands[:2]
        of_a = rows_of(a, False, 0, rows).square().mean(0)
        of_b = torch.stack([self._b_of(b, each.number).square().mean(0) for each in self._groups]).mean(0)
        return math.sqrt(float(of_a @ of_b))

    def _b_of(self, b: Operand, number: int) -> torch.Tensor:
        return rows_of(b, False, number * self._n, (number + 1) * self._n)


def _summed(b: Operand, first: int, weights: torch.Tensor) -> torch.Tensor:
    """The sum of rows of B from ``first`` on, each times its float64 weight: K numbers."""
    total = None
    for start, stop in _spans(first, first + len(weights), b.data.shape[1]):
        found = torch.mv(b.numbers(start, stop).t(), weights[start - first : stop - first])
        total = found if total is None else total.add_(found)
    assert total is not None
    return total


def _spans(first: int, last: int, columns: int) -> Iterator[tuple[int, int]]:
    step = max(1, CHUNK_ELEMENTS // columns)
    return ((start, min(start + step, last)) for start in range(first, last, step))
