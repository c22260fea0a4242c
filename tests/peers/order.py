"""In which order two sides of a comparison take turns."""

from collections.abc import Iterator


def turns(pairs: int) -> Iterator[tuple[int, int]]:
    """Yield (pair, side) with side 0 or 1: every pair has both, and whoever went first goes second in the next.

    A drift over the run (a device that warms up) then falls on both sides alike.
    """
    for pair in range(pairs):
        first = pair % 2
        yield pair, first
        yield pair, 1 - first
