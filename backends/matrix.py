"""How the one-dimensional arrays of a memory test are laid out as matrices."""

import math

# Enough rows to keep every unit of a large device busy, each long enough for a stream of wide loads.
MOST_ROWS = 1 << 14
SHORTEST_ROW = 1 << 12


def matrix_shape(elements: int) -> tuple[int, int]:
    """Rows and columns that hold exactly ``elements``: as many rows as is useful and as the count divides into."""
    useful = min(MOST_ROWS, 1 << max(0, (elements // SHORTEST_ROW).bit_length() - 1))
    rows = math.gcd(elements, useful)
    return rows, elements // rows
