"""How far the median of one run may be from what it would be without the noise within the run.

No sample counts as independent.  What was taken in batches of its own (rounds of an alternating measurement, windows of a
burst) is as certain as the batches' medians agree.  One long stretch has no batches: cutting it into some and taking those for
independent sees nothing of a wander as long as they are.  Its noise is the width of ``median_interval``, which rests on
stretches of every length.  ``tests/compare/RATES.md`` has the figures of this and of other ways.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from suite.measure.samples import cycles
from suite.measure.statistics import Interval, batch_interval, median, median_interval, quantile, t_95
from suite.measurement import SampleSet

# By their intervals, two medians of one stretch each differ as Student's t with so many degrees does, or less.
STRETCH_DEGREES = 8
_NORMAL_95 = 1.96
# Where batches differ by more than the samples within them, the median of all samples is about the median of the batches, and
# that varies so many times as much as their mean, which ``batch_interval`` is of (for normal ones, the square root of pi / 2).
_OF_MEDIAN = 1.2533
_NS = 1e-9
_FEW = 5  # samples of one stretch, below which ``median_interval`` takes them for normal


class Noise(NamedTuple):
    """How far the logarithm of a median may be from the truth, with the degrees of freedom that this is known to.

    ``below`` and ``above`` are standard errors: of the truth being less than the median, and of its being more.  They differ
    where the samples have two modes: the truth may then be the other one, and that lies on one side.  Infinite where nothing
    is known.
    """

    below: float
    above: float
    degrees: int


UNKNOWN = Noise(math.inf, math.inf, 1)
NONE = Noise(0.0, 0.0, 1)


def noise_of(samples: SampleSet) -> Noise:
    """The noise of the median of all samples.  The timer's step is part of it, so that equal samples are not certain."""
    return _noise_of([duration * _NS for duration in samples.durations_ns], samples.boundaries, samples.resolution_s)


def noise_of_cycles(samples: SampleSet) -> Noise | None:
    """The same of the cycles that the samples took; ``None`` where the device's clock was not counted over each of them."""
    if not samples.clocks_khz:
        return None
    values = [cycles(*each) for each in zip(samples.durations_ns, samples.clocks_khz, strict=True)]
    clock_hz = sum(values) / (sum(samples.durations_ns) * _NS) if any(samples.durations_ns) else 0.0
    return _noise_of(values, samples.boundaries, samples.resolution_s * clock_hz)


def _noise_of(values: Sequence[float], boundaries: Sequence[int], step: float) -> Noise:
    if len(values) < 2:
        return UNKNOWN
    batches = batches_of(values, boundaries)
    if len(batches) > 1:
        return _of_batches(batches, median(values), step)
    stretch = median_interval(values, step)
    if len(values) < _FEW:
        return _noise(stretch, median(values), len(values) - 1, t_95(len(values) - 1))
    return _noise(stretch, median(values), STRETCH_DEGREES, _NORMAL_95)


def batches_of(values: Sequence[float], boundaries: Sequence[int]) -> list[Sequence[float]]:
    """The samples of each batch; one that lost all of its samples to thinning is not among them."""
    ends = [*boundaries[1:], len(values)]
    return [values[start:end] for start, end in zip(boundaries, ends, strict=True) if end > start]


def _of_batches(batches: Sequence[Sequence[float]], center: float, resolution_s: float) -> Noise:
    """By how far the batches' medians are spread, or by their own order, whichever is more.

    Medians of two kinds, half of them each, are far apart in the middle, where the median of all is: their order knows that.
    """
    degrees = len(batches) - 1
    spread = _noise(batch_interval(batches, resolution_s), center, degrees, t_95(degrees) / _OF_MEDIAN)
    medians, reach = [median(batch) for batch in batches], min(0.5, _NORMAL_95 / 2 / math.sqrt(len(batches)))
    order = Interval(min(center, quantile(medians, 0.5 - reach)), max(center, quantile(medians, 0.5 + reach)))
    by_order = _noise(order, center, degrees, _NORMAL_95)
    return Noise(max(spread.below, by_order.below), max(spread.above, by_order.above), degrees)


def _noise(interval: Interval, center: float, degrees: int, errors: float) -> Noise:
    """From an interval that reaches so many errors to either side.

    By ratio: a median of 30 that may be 3 is uncertain by ten times, not by nine tenths.
    """
    if interval.low <= 0 or center <= 0:
        return UNKNOWN
    below, above = (math.log(ratio) / errors for ratio in (center / interval.low, interval.high / center))
    return Noise(max(0.0, below), max(0.0, above), degrees)
