"""Other ways to tell the noise of one stretch of samples, to compare the one in use with."""

import math
import random
from collections.abc import Callable
from itertools import pairwise
from statistics import fmean, median, stdev

from suite.compare.noise import Noise, noise_of
from suite.measure.statistics import cut
from suite.measurement import SampleSet

Construction = Callable[[SampleSet], Noise]
_OF_MEDIAN = math.sqrt(math.pi / 2)
_DRAWS = 100


def batches(count: int) -> Construction:
    """Medians of so many consecutive stretches, taken for independent."""

    def noise(samples: SampleSet) -> Noise:
        medians = [math.log(median(batch)) for batch in cut(samples.durations_ns, count)]
        error = _OF_MEDIAN * stdev(medians) / math.sqrt(count)
        return Noise(error, error, count - 1)

    return noise


def correlated(count: int) -> Construction:
    """The same, by the correlation of neighbours, whose estimate is made larger by its bias (Kendall 1954)."""

    def noise(samples: SampleSet) -> Noise:
        medians = [math.log(median(batch)) for batch in cut(samples.durations_ns, count)]
        around = [value - fmean(medians) for value in medians]
        variation = sum(value * value for value in around)
        rho = sum(one * other for one, other in pairwise(around)) / variation if variation else 0.0
        rho = min(max(rho + (1 + 3 * rho) / count, 0.0), 1 - 0.25 / count)
        error = _OF_MEDIAN * stdev(medians) / math.sqrt(count) * math.sqrt((1 + rho) / (1 - rho))
        return Noise(error, error, count - 1)

    return noise


def bootstrap(count: int) -> Construction:
    """Consecutive stretches drawn anew, with replacement: the spread of the median of all their samples."""

    def noise(samples: SampleSet) -> Noise:
        stretches, draw = cut(samples.durations_ns, count), random.Random(1)
        drawn = (draw.choices(stretches, k=count) for _ in range(_DRAWS))
        error = stdev(math.log(median([value for each in again for value in each])) for again in drawn)
        return Noise(error, error, count - 1)

    return noise


CONSTRUCTIONS: dict[str, Construction] = {
    "in use": noise_of,
    "20 batches": batches(20),
    "5 batches": batches(5),
    "20 batches, correlated": correlated(20),
    "bootstrap of 20": bootstrap(20),
}
