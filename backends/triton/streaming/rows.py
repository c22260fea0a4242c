"""Which rows of the weights W (n x k) a tile has."""

import triton
import triton.language as tl

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803


@triton.jit
def rows_of(tile, n, apart, ROWS: tl.constexpr, PAIRS_OF: tl.constexpr):
    """The rows of W of a tile; those behind the end are the last one, and are not written.

    ``PAIRS_OF`` is how many pairs stand together, half of a head's columns; -1 where all do, 0 where rows stand alone.
    """
    if PAIRS_OF == 0:
        rows = tl.minimum(tile * ROWS + tl.arange(0, ROWS), n - 1)
    else:
        half: tl.constexpr = ROWS // 2
        places = tl.arange(0, ROWS)
        pairs = tl.minimum(tile * half + places % half, n // 2 - 1)
        if PAIRS_OF > 0:
            pairs = pairs // PAIRS_OF * (2 * PAIRS_OF) + pairs % PAIRS_OF
        rows = pairs + places // half * apart
    return rows
