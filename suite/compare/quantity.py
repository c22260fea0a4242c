"""What of two results is compared: cycles of a launch, or its time."""

import math

from suite.outcome import Bound
from suite.rows import ResultRow


def in_cycles(a: ResultRow, b: ResultRow) -> bool:
    """Cycles where arithmetic bounds both, both devices counted them, and are of one kind.

    A chip of another kind needs other cycles for the same work at another clock: between kinds time is what tells.
    """
    return all(row.bound == Bound.COMPUTE and row.clock_hz for row in (a, b)) and a.device == b.device


def log_time(a: ResultRow, b: ResultRow) -> float:
    """The logarithm of B's median time over A's; both must have been timed."""
    assert a.p50_s, "nothing to compare with"
    assert b.p50_s, "nothing to compare"
    return math.log(b.p50_s / a.p50_s)


def log_clock(a: ResultRow, b: ResultRow) -> float | None:
    """The logarithm of B's counted clock over A's; ``None`` where one was not counted."""
    return math.log(b.clock_hz / a.clock_hz) if a.clock_hz and b.clock_hz else None


def log_ratio(a: ResultRow, b: ResultRow) -> float:
    """The logarithm of B over A in the quantity that is compared.

    Where the clock was counted over each sample, the ratio of cycles has a noise of its own.  Elsewhere it is taken to be that
    of the times; under a power limit it is less, for a launch has the same cycles at each clock.
    """
    clock = log_clock(a, b) if in_cycles(a, b) else None
    return log_time(a, b) + (clock or 0.0)
