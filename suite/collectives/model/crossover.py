"""From which message size on one algorithm is faster than another: measured, and as two fits predict it."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from suite.collectives.model.alpha_beta import Fit

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
    """The size at which two fits take equally long."""

    faster_below: str
    faster_above: str
    at_bytes: float


def predicted_crossing(first: Fit, second: Fit, ranks: int) -> PredictedCrossing | None:
    """Where two fits cross; ``None`` where one of them is faster at every size."""
    start_s = first.time_s(ranks, 0) - second.time_s(ranks, 0)
    slope_s = first.time_s(ranks, _FAR_BYTES) - second.time_s(ranks, _FAR_BYTES) - start_s
    if start_s * slope_s >= 0:
        return None
    names = (first.algo, second.algo) if start_s < 0 else (second.algo, first.algo)
    return PredictedCrossing(*names, -start_s / slope_s * _FAR_BYTES)
