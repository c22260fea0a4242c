"""How the one-dimensional arrays of a memory test are laid out as matrices."""

import math

# Enough rows to keep every unit of a large device busy, each long enough for a stream of wide loads.
MOST_ROWS = 1 << 14
SHORTEST_ROW = 1 << 12


def whole_rows(elements: int) -> int:
    """The next number of elements that divides into as many rows as is useful."""
    rows = _useful(elements)
    return -(-elements // rows) * rows


def matrix_shape(elements: int) -> tuple[int, int]:
    """Rows and columns that hold exactly ``elements``: as many rows as is useful and as the count divides into."""
    rows = math.gcd(elements, _useful(elements))
    return rows, elements // rows


def _useful(elements: int) -> int:
    return min(MOST_ROWS, 1 << max(0, (elements // SHORTEST_ROW).bit_length() - 1))
