"""When to stop sampling: an object that is fed samples and asked whether it is done."""

from collections.abc import Sequence

from suite.measure.statistics import Interval, median, median_interval

FEWEST_WITH_A_RANGE = 6  # of so many independent samples the median lies between the least and the greatest in 97 of 100 cases
LOOK_GROWTH = 1.25  # looking after every sample until it happens to be narrow would under-cover; looks are spaced geometrically
ROUNDING = 1e-9  # a width of exactly one step is one step


def narrow_enough(interval: Interval, center: float, target: float, resolution: float) -> bool:
    """Whether half the width is at most ``target`` of ``center``, or at most one step of the timer.

    Sampling narrows an interval no further than to one or two steps, however long it goes on.
    """
    return (interval.high - interval.low) / 2 <= max(target * center, resolution) * (1 + ROUNDING)


class IntervalRule:
    """Stops once the 95 % interval of the median is narrow enough, looking at geometrically spaced counts.

    ``target`` is the relative half-width asked for, with the timer's ``resolution_s`` as its floor.  Times are seconds.
    The interval tells of what changes within the time sampled: of a clock that switches every second, samples of a tenth
    of a second know one state only, and are as narrow as if there were no other.  A change seen in part may go on beyond all
    samples: sampling does, for as long as that is possible; what is told of when the time is up is the range of the samples.
    """

    def __init__(self, target: float, min_samples: int, min_time_s: float, max_time_s: float, resolution_s: float) -> None:
        self._target, self._min_samples = target, min_samples
        self._min_time_s, self._max_time_s = min_time_s, max_time_s
        self._resolution_s = resolution_s
        self._samples: list[float] = []
        self._own_s = self._total_s = 0.0
        self._interval: Interval | None = None
        self._looked_at = 0
        self._converged = False

    @property
    def samples(self) -> Sequence[float]:
        """Everything fed so far, in order."""
        return self._samples

    @property
    def interval(self) -> Interval | None:
        """The interval at the last look, per sample and at least one step of the timer wide; ``None`` with one sample.

        Of ``FEWEST_WITH_A_RANGE`` or more that did not converge it is no wider than their range.
        """
        return self._interval

    @property
    def converged(self) -> bool:
        """Whether the last look met the target, or the timer's floor."""
        return self._converged

    def next_count(self) -> int:
        """How many samples to take before looking again: at least one."""
        if not self._samples:
            return 1  # the first only tells how long one takes
        per_sample_s = max(self._total_s / len(self._samples), 1e-9)
        wanted = max(self._min_samples, int(self._min_time_s / per_sample_s) + 1, int(self._looked_at * LOOK_GROWTH))
        affordable = int((self._max_time_s - self._total_s) / per_sample_s)
        return max(1, min(wanted - len(self._samples), affordable))

    def feed(self, durations_s: Sequence[float], elapsed_s: float) -> None:
        """Add samples in the order taken; ``elapsed_s`` is the wall time they cost, untimed flushes included."""
        self._samples.extend(durations_s)
        self._own_s += sum(durations_s)
        self._total_s += elapsed_s
        if self._ripe() or self.exhausted:
            self._look()

    @property
    def exhausted(self) -> bool:
        """Whether the time allowed is used up."""
        return self._total_s >= self._max_time_s

    def done(self) -> bool:
        """Whether sampling can stop: converged at a look, or out of time."""
        return self._converged or self.exhausted

    def _look(self) -> None:
        self._looked_at = len(self._samples)
        if self._looked_at >= 2:
            interval = median_interval(self._samples, self._resolution_s)
            self._converged = narrow_enough(interval, median(self._samples), self._target, self._resolution_s)
            few = self._looked_at < FEWEST_WITH_A_RANGE
            self._interval = interval if few or self._converged else self._in_range(interval)

    def _in_range(self, interval: Interval) -> Interval:
        sampled = Interval(min(self._samples), max(self._samples)).widened(self._resolution_s)
        return interval.within(*sampled)

    def _ripe(self) -> bool:
        enough = len(self._samples) >= max(self._min_samples, int(self._looked_at * LOOK_GROWTH))
        return enough and max(self._own_s, self._total_s) >= self._min_time_s
