"""How many times as fast one result is as another, with the 95 % interval that follows from theirs."""

import math
from typing import NamedTuple

from suite.rows import ResultRow


class Speed(NamedTuple):
    """``times`` as fast as another result, and the 95 % interval of that; ``None`` where a median's is not known."""

    times: float
    interval: tuple[float, float] | None

    @property
    def words(self) -> str:
        """``1.02 (1.01 to 1.03)``; ``1`` of a result beside itself."""
        if self.interval is None:
            return f"{times_words(self.times)} ± not resolved"
        low, high = map(times_words, self.interval)
        return "1" if low == high == "1" else f"{times_words(self.times)} ({low} to {high})"

    @property
    def each_words(self) -> str:
        """The interval alone, for several that it holds for: ``each 1.01 to 1.03``; ``words`` where it is not known."""
        if self.interval is None:
            return self.words
        return f"each {' to '.join(dict.fromkeys(map(times_words, self.interval)))}"


MOST_DIGITS = 17  # tell any two numbers apart


def times_words(times: float) -> str:
    """Three digits, and near 1 as many more as tell on which side of it: ``1.06``, ``1.002``; what is slower is not ``1``."""
    written = (f"{times:.{digits}g}" for digits in range(3, MOST_DIGITS + 1))
    return next((text for text in written if text != "1"), "1")


def speed(row: ResultRow, other: ResultRow) -> Speed | None:
    """How many times as fast ``row`` is as ``other``; ``None`` where one of them was not timed."""
    if not row.p50_s or not other.p50_s:
        return None
    times = other.p50_s / row.p50_s
    return Speed(1.0, (1.0, 1.0)) if row is other else Speed(times, _interval(row, other, times))


def _interval(row: ResultRow, other: ResultRow, times: float) -> tuple[float, float] | None:
    """From the intervals of two independent medians, on the logarithmic scale, where a ratio is a difference.

    The distance to each end is the root of the sum of squares of the distances that lead there (Zou and Donner,
    "Construction of confidence limits about effect measures: a general approach", Statistics in Medicine 27, 2008).
    """
    ends = (*(other.interval_s or ()), *(row.interval_s or ()))
    if len(ends) < 4 or min(ends) <= 0:
        return None
    other_low, other_high, low, high = (math.log(end) for end in ends)
    base, own = math.log(other.p50_s or 1.0), math.log(row.p50_s or 1.0)
    down, up = math.hypot(base - other_low, high - own), math.hypot(other_high - base, own - low)
    return times * math.exp(-down), times * math.exp(up)
