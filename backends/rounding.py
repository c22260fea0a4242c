"""What storing the operands of a product in a format costs: where it is looked at, and the figure, whoever drew them.

The figure is norm(C' - C) / norm(C) over sampled tiles of the first input set: C of the float64 data as drawn, C' of what is
stored.  C is the product alone, before any epilogue.  For tf32 as if the data were rounded to 10 bits of mantissa, to the
nearest.  An operand that is stored with K as its rows is looked at over as much of K as is quickly drawn.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STRIP = 64
STRIPS = 2  # of rows of A and of columns of B: 128 x 128 elements of the product
DRAWN_ELEMENTS = 1 << 22  # of an operand that is stored with K as its rows
EXACT = ("fp64", "fp32", "int8")  # drawn as they are stored, and integers that stand for themselves

Numbers = NDArray[np.float64]


class Sampled(NamedTuple):
    """Some rows of A or columns of B, each K numbers in float64: as they are stored, and as they were drawn."""

    stored: Numbers
    drawn: Numbers


def strips(rows: int) -> tuple[tuple[int, int], ...]:
    """Where rows are looked at, each from and to: at the first and the last."""
    height = min(STRIP, rows)
    starts = dict.fromkeys(round(i * (rows - height) / max(1, STRIPS - 1)) for i in range(STRIPS))
    return tuple((start, start + height) for start in starts)


def depth(k: int, transposed_rows: Iterable[int]) -> int:
    """How much of K is looked at, with so many rows in each operand that is stored with K as its own."""
    return min([k, *(max(1, DRAWN_ELEMENTS // rows) for rows in transposed_rows)])


def relative_error(format_name: str, a: Sampled, b: Sampled) -> float | None:
    """``None`` on data that are all zeros."""
    factors = [to_tf32(each.stored) if format_name == "tf32" else each.stored for each in (a, b)]
    exact = a.drawn @ b.drawn.T
    size = float(np.linalg.norm(exact))
    return float(np.linalg.norm(factors[0] @ factors[1].T - exact)) / size if size else None


def to_tf32(numbers: Numbers) -> Numbers:
    """float32 numbers in float64, rounded to 10 bits of mantissa: to the nearest, ties to even."""
    bits = numbers.astype(np.float32).view(np.int32)
    rounded = (bits + 0x0FFF + ((bits >> 13) & 1)) & ~0x1FFF
    return rounded.view(np.float32).astype(np.float64)
