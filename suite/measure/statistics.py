"""The median of correlated samples and its interval.

Samples that follow each other are not independent: clocks, temperature and caches drift.  The interval therefore comes
from batches: the spread of the medians of consecutive stretches, which keeps the correlation inside a stretch.  Which
stretch length is long enough is not known beforehand, so several are tried and the widest interval is taken.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

# Student's t, two-sided 95 %, by degrees of freedom (NIST/SEMATECH e-Handbook, table 1.3.6.7.2).
_T_95 = (
    12.706,
    4.303,
    3.182,
    2.776,
    2.571,
    2.447,
    2.365,
    2.306,
    2.262,
    2.228,
    2.201,
    2.179,
    2.160,
    2.145,
    2.131,
    2.120,
    2.110,
    2.101,
    2.093,
    2.086,
    2.080,
    2.074,
    2.069,
    2.064,
    2.060,
    2.056,
    2.052,
    2.048,
    2.045,
    2.042,
)
_NORMAL_95 = 1.960

BATCH_COUNTS = (40, 20, 10)  # stretches the samples are cut into; fewer are longer, hence less correlated


class Interval(NamedTuple):
    """A 95 % confidence interval, in the unit of the samples."""

    low: float
    high: float

    def relative_half_width(self, center: float) -> float:
        """Half the width over ``center``; infinite when ``center`` is 0."""
        return (self.high - self.low) / 2 / center if center else math.inf


def median(values: Iterable[float]) -> float:
    """The middle value; of an even count the mean of the middle pair.  An empty input is a programming error."""
    ordered = sorted(values)
    assert ordered, "the median of nothing"
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def quantile(values: Iterable[float], q: float) -> float:
    """The ``q``-quantile (0 to 1) by linear interpolation between order statistics (Hyndman and Fan, type 7)."""
    ordered = sorted(values)
    assert ordered, "a quantile of nothing"
    position = q * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def t_95(degrees_of_freedom: int) -> float:
    """Two-sided 95 % quantile of Student's t; above 30 by its expansion around the normal (error under 0.001)."""
    if degrees_of_freedom <= len(_T_95):
        return _T_95[degrees_of_freedom - 1]
    return _NORMAL_95 + 2.37 / degrees_of_freedom + 2.82 / degrees_of_freedom**2


def batch_interval(batches: Sequence[Sequence[float]]) -> Interval:
    """Interval of the median of all samples from the spread of the batches' medians; needs two batches.

    For batches that are natural units: rounds of an interleaved measurement, windows of a burst.
    """
    assert len(batches) >= 2, "an interval needs at least two batches"
    center = median(value for batch in batches for value in batch)
    half = _half_width([median(batch) for batch in batches])
    return Interval(center - half, center + half)


def median_interval(samples: Sequence[float], batch_counts: Sequence[int] = BATCH_COUNTS) -> Interval:
    """Interval of the median of one stretch of consecutive samples: the widest over the batch lengths tried."""
    center = median(samples)
    usable = [count for count in batch_counts if count <= len(samples)] or [len(samples)]
    half = max(_half_width([median(batch) for batch in cut(samples, count)]) for count in usable)
    return Interval(center - half, center + half)


def cut(samples: Sequence[float], count: int) -> list[Sequence[float]]:
    """Cut into ``count`` consecutive stretches whose lengths differ by at most one."""
    edges = [round(i * len(samples) / count) for i in range(count + 1)]
    return [samples[start:end] for start, end in pairwise(edges)]


def _half_width(medians: Sequence[float]) -> float:
    count = len(medians)
    if count < 2:
        return math.inf
    mean = math.fsum(medians) / count
    variance = math.fsum((value - mean) ** 2 for value in medians) / (count - 1)
    return t_95(count - 1) * math.sqrt(variance / count)
