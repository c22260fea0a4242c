"""A norm (the weights times X over the root mean square of its rows) in two launches.

The one that writes X (m x width) also writes it times the norm's weights, rounded to its format, and for each part of a row
that a program has the sum of its squares: into a slot of its own, so that equal inputs give equal bits.  The one that
multiplies X by other weights adds the slots up, and divides its sums in the end, with which the division commutes.  So no
program of many reads both X and the norm's weights, beside few rows of weights of its own.
"""

import triton
import triton.language as tl

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803

EPSILON = 1e-5  # beside the mean square
FEWEST_ROWS = {1: 4, 16: 16, 64: 32}  # of weights that a program has, by the most rows of X
AT_ONCE = tl.constexpr(4096)  # sums of squares that are added up together


def slots(width: int, m: int) -> int:
    """Of a row that is ``width`` wide: a power of two, no fewer than there may be parts; what no part fills is zero."""
    rows = next(rows for most, rows in FEWEST_ROWS.items() if m <= most)
    return 1 << (-(-width // rows) - 1).bit_length()


@triton.jit
def sums_of_squares(squares_ptr, SLOTS: tl.constexpr, M: tl.constexpr, COLUMNS: tl.constexpr):
    """Of each of the ``M`` rows, padded to ``COLUMNS``; ``squares`` is (slots, M)."""
    together: tl.constexpr = max(1, min(SLOTS, AT_ONCE // COLUMNS))
    columns = tl.arange(0, COLUMNS)[None, :]
    square = tl.zeros((together, COLUMNS), tl.float32)
    for first in tl.range(0, SLOTS, together, num_stages=1):
        slot = (first + tl.arange(0, together))[:, None]
        square += tl.load(squares_ptr + slot * M + columns, mask=(slot >= 0) & (columns < M), other=0.0)
    return tl.sum(square, 0)


@triton.jit
def made_ready(numbers, weights, there, places, scaled_ptr):
    """Write ``numbers`` (rows x columns) times ``weights`` where they are ``there``; sums of their squares, one a column."""
    wide = numbers.to(tl.float32)
    tl.store(scaled_ptr + places, (wide * weights.to(tl.float32)).to(scaled_ptr.dtype.element_ty), mask=there)
    return tl.sum(tl.where(there, wide * wide, 0.0), 0)
