"""From which message size on one algorithm is faster than another: measured, and as two fits predict it."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from suite.collectives.model.alpha_beta import Fit
from suite.collectives.model.formulas import terms

_FAR_BYTES = 2**40  # both times are straight lines: any size tells their slope, a large one exactly


class Measured(NamedTuple):
    """A measured time with its interval, seconds."""

    message_bytes: int
    time_s: float
    low_s: float
    high_s: float


class Crossing(NamedTuple):
    """Below ``between`` the one is faster, above it the other; ``at_bytes`` interpolates between the two measured sizes.

    Sizes inside, where neither is shown to be faster, have intervals that overlap.
    """

    faster_below: str
    faster_above: str
    between: tuple[int, int]
    at_bytes: float


class _Comparison(NamedTuple):
    message_bytes: int
    log_ratio: float  # of the first's time to the second's


def crossings(first: str, firsts: Sequence[Measured], second: str, seconds: Sequence[Measured]) -> tuple[Crossing, ...]:
    """Where the faster of two changes, over the sizes that both have; only sizes whose intervals do not overlap decide."""
    of_second = {each.message_bytes: each for each in seconds}
    pairs = [(each, of_second[each.message_bytes]) for each in sorted(firsts) if each.message_bytes in of_second]
    decided = [
        _Comparison(one.message_bytes, math.log(one.time_s / other.time_s))
        for one, other in pairs
        if one.high_s < other.low_s or other.high_s < one.low_s
    ]
    return tuple(
        _crossing(first, second, before, after)
        for before, after in pairwise(decided)
        if (before.log_ratio < 0) != (after.log_ratio < 0)
    )


def _crossing(first: str, second: str, before: _Comparison, after: _Comparison) -> Crossing:
    share = before.log_ratio / (before.log_ratio - after.log_ratio)
    at_bytes = before.message_bytes * (after.message_bytes / before.message_bytes) ** share
    names = (first, second) if before.log_ratio < 0 else (second, first)
    return Crossing(*names, (before.message_bytes, after.message_bytes), at_bytes)


class PredictedCrossing(NamedTuple):
    """The size at which two fits take equally long.

    ``between`` are the sizes at which what is known of the fits does not tell which is faster: all of them, where that
    holds for the smallest or the largest of messages.
    """

    faster_below: str
    faster_above: str
    at_bytes: float
    between: tuple[float, float] = (0.0, math.inf)

    @property
    def is_resolved(self) -> bool:
        """Whether one is known to be faster below, and the other above."""
        low, high = self.between
        return low > 0 and math.isfinite(high)


def predicted_crossing(first: Fit, second: Fit, ranks: int) -> PredictedCrossing | None:
    """Where two fits cross; ``None`` where one of them is faster at every size."""
    start_s = first.time_s(ranks, 0) - second.time_s(ranks, 0)
    slope_s = first.time_s(ranks, _FAR_BYTES) - second.time_s(ranks, _FAR_BYTES) - start_s
    if start_s * slope_s >= 0:
        return None
    names = (first.algo, second.algo) if start_s < 0 else (second.algo, first.algo)
    return PredictedCrossing(*names, -start_s / slope_s * _FAR_BYTES, _untold(start_s, slope_s, first, second, ranks))


def _untold(start_s: float, slope_s: float, first: Fit, second: Fit, ranks: int) -> tuple[float, float]:
    """The sizes at which two fits are nearer to each other than their 95 % half widths together.

    The ratio of two numbers that are both uncertain has Fieller's interval (Fieller 1954, J. Royal Statistical Society B 16):
    the roots of the square of the difference, less the square of its half width.
    """
    starts2 = both = slopes2 = 0.0
    for each in (first, second):
        steps, _ = terms(each.op, each.algo, ranks, 0)
        volume = terms(each.op, each.algo, ranks, _FAR_BYTES).volume
        starts2 += steps**2 * each.spread.alpha2
        both += steps * volume * each.spread.both
        slopes2 += volume**2 * each.spread.inverse2
    constant, linear, square = start_s**2 - starts2, start_s * slope_s - both, slope_s**2 - slopes2
    if constant <= 0 or square <= 0:
        return 0.0, math.inf
    root = math.sqrt(max(0.0, linear**2 - constant * square))
    return ((-linear - root) / square * _FAR_BYTES, (-linear + root) / square * _FAR_BYTES)
