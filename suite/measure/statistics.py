"""The median of correlated samples and its interval.

Samples that follow each other are not independent: clocks, temperature and caches drift.  What the interval rests on is
therefore not the samples' spread but how the share of samples below their median varies from one stretch of consecutive
samples to the next; the share is turned back into durations by the samples' own order.  So no shape is assumed: two
modes give an interval from one to the other, and outliers count as samples, not by their size.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import mul
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

_STRETCHES = 5  # long ones, hence hardly correlated; how they vary is known to four degrees of freedom
_FEWEST_NEIGHBOURS = 30  # of fewer stretches the correlation of neighbours tells less than how the long ones vary
# Of a correlation of one, an estimate from n samples falls short by up to 14/n in 19 of 20 (Fuller 1976, table 8.5.1: the
# case with an estimated mean).
_SHORTFALL = 14.0
# So correlated that all samples together are few, they have no order statistics beyond the median's interval; what lies
# further than these from the middle is taken in proportion, and one outlier does not become the end of an interval.
_FARTHEST = 0.45
# Below this many samples no order statistics bracket the median often enough, and they are taken for normal instead.
_FEW = 5


class Interval(NamedTuple):
    """A 95 % confidence interval, in the unit of the samples."""

    low: float
    high: float

    def relative_half_width(self, center: float) -> float:
        """Half the width over ``center``; infinite when ``center`` is 0."""
        return (self.high - self.low) / 2 / center if center else math.inf

    def per_launch(self, launches: int) -> "Interval":
        """The interval of one launch, from that of samples of ``launches`` launches."""
        return Interval(self.low / launches, self.high / launches)

    def within(self, low: float, high: float) -> "Interval":
        """The part of the interval between two values, one of which lies in it."""
        return Interval(max(self.low, low), min(self.high, high))

    def widened(self, resolution: float) -> "Interval":
        """What the true durations may be when each was read in steps of ``resolution``: half a step more at both ends."""
        return Interval(self.low - resolution / 2, self.high + resolution / 2)


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


def batch_interval(batches: Sequence[Sequence[float]], resolution: float = 0.0) -> Interval:
    """Interval of the median of all samples from the spread of the batches' medians; needs two batches.

    For batches that are natural units: rounds of an interleaved measurement, windows of a burst.  ``resolution`` is the
    timer's step, in the unit of the samples.
    """
    assert len(batches) >= 2, "an interval needs at least two batches"
    center = median(value for batch in batches for value in batch)
    half = _half_width([median(batch) for batch in batches])
    return Interval(center - half, center + half).widened(resolution)


def median_interval(samples: Sequence[float], resolution: float = 0.0) -> Interval:
    """Interval of the median of one stretch of consecutive samples; needs two samples.

    ``resolution`` is the timer's step, in the unit of the samples: equal samples give an interval one step wide.  Looked at
    once it holds the median of independent samples in 98 to 99 of 100; what looking repeatedly costs is in there.
    """
    assert len(samples) >= 2, "an interval needs at least two samples"
    ordered = sorted(samples)
    center = _quantile_of_ordered(ordered, 0.5)
    if len(samples) < _FEW:
        # The median of three varies 1.16 times as much as their mean.
        half = 1.16 * _half_width(samples)
        return Interval(center - half, center + half).widened(resolution)
    below = _around_their_mean([1.0 if value < center else 0.5 if value == center else 0.0 for value in samples])
    reach = max(_reach_by_samples(samples, ordered), _reach_by_wander(below), _reach_by_stretches(below))
    bounded = min(reach, _FARTHEST)
    low, high = _quantile_of_ordered(ordered, 0.5 - bounded), _quantile_of_ordered(ordered, 0.5 + bounded)
    beyond = reach / bounded
    return Interval(center - (center - low) * beyond, center + (high - center) * beyond).widened(resolution)


def cut(samples: Sequence[float], count: int) -> list[Sequence[float]]:
    """Cut into ``count`` consecutive stretches whose lengths differ by at most one."""
    edges = [round(i * len(samples) / count) for i in range(count + 1)]
    return [samples[start:end] for start, end in pairwise(edges)]


def _reach_by_samples(samples: Sequence[float], ordered: Sequence[float]) -> float:
    """How far the share of samples below the true median may be from a half, by the correlation of neighbouring samples."""
    return _extrapolated(_neighbour_correlation(_ranks(samples, ordered)), 0.25, len(samples))


def _reach_by_wander(below: Sequence[float]) -> float:
    """The same by the correlation of neighbouring stretches of two samples, of four, of eight: of a wander under noise.

    A correlation counts where it is more than its own standard error.
    """
    reach, shares = 0.0, below
    while len(shares) >= 2 * _FEWEST_NEIGHBOURS:
        shares = [(one + other) / 2 for one, other in zip(shares[::2], shares[1::2], strict=False)]
        rho = _neighbour_correlation(shares)
        if rho + (1 + 3 * rho) / len(shares) > 1 / math.sqrt(len(shares)):
            reach = max(reach, _extrapolated(rho, sum(map(mul, shares, shares)) / len(shares), len(shares)))
    return reach


def _reach_by_stretches(below: Sequence[float]) -> float:
    """The same by how the share varies between a few long stretches."""
    return _half_width([sum(stretch) / len(stretch) for stretch in cut(below, _STRETCHES)])


def _extrapolated(rho: float, variance: float, count: int) -> float:
    """Half the 95 % interval of the mean of ``count`` values whose correlation falls off by ``rho`` from each to the next.

    It tells of correlation that lasts as long as the values do, which stretches do not show.
    """
    rho += (1 + 3 * rho) / count  # the bias of the estimate (Kendall 1954)
    rho *= 1 + _SHORTFALL / count
    rho = min(max(rho, 0.0), 1 - 0.25 / count)
    return _NORMAL_95 * math.sqrt(variance * (1 + rho) / (1 - rho) / count)


def _neighbour_correlation(values: Sequence[float]) -> float:
    """Correlation of successive values around zero; none where all are zero."""
    variation = sum(map(mul, values, values))
    return sum(map(mul, values, values[1:])) / variation if variation else 0.0


def _ranks(samples: Sequence[float], ordered: Sequence[float]) -> list[float]:
    """Twice each sample's rank, from the middle one; equal samples share the middle of their ranks."""
    last = {value: index for index, value in enumerate(ordered)}
    first = {value: -index for index, value in enumerate(reversed(ordered))}  # counted back from the end, as is the middle
    return [float(last[value] + first[value]) for value in samples]


def _around_their_mean(values: Sequence[float]) -> list[float]:
    mean = sum(values) / len(values)
    return [value - mean for value in values]


def _quantile_of_ordered(ordered: Sequence[float], q: float) -> float:
    """Halfway between order statistics where ``q`` of the samples end (Hyndman and Fan, type 5)."""
    last = len(ordered) - 1
    position = min(max(q * len(ordered) - 0.5, 0.0), last)
    below = math.floor(position)
    return ordered[below] + (position - below) * (ordered[min(below + 1, last)] - ordered[below])


def _half_width(medians: Sequence[float]) -> float:
    count = len(medians)
    if count < 2:
        return math.inf
    mean = math.fsum(medians) / count
    variance = math.fsum((value - mean) ** 2 for value in medians) / (count - 1)
    return t_95(count - 1) * math.sqrt(variance / count)
