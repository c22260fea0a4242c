"""When to stop sampling: an object that is fed samples and asked whether it is done."""

from collections.abc import Sequence

from suite.measure.statistics import Interval, median, median_interval

FEWEST_WITH_A_RANGE = 6  # of so many independent samples the median lies between the least and the greatest in 97 of 100 cases
LOOK_GROWTH = 1.25  # looking after every sample until it happens to be narrow would under-cover; looks are spaced geometrically
# Times the least time.  At the power limit of an H200 the medians of a product's tenths of a second vary by 0.9 % (standard
# deviation over 20 s), those of half seconds by 0.45 %; of 118 tenths of a second that looked quiet 20 held the median.
KNOWN_WHILE_STEPPING, KNOWN_IN_CYCLES = 2, 5
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

    Where the device's clock was counted over every sample, the median of their cycles is as good a figure: a power limit makes
    the clock step to and fro for as long as one looks, and a kernel takes the same cycles at each step.  It counts once
    ``KNOWN_IN_CYCLES`` times ``min_time_s`` was sampled, so that the clock beside it is known too.  ``clock_moves`` says that
    it stepped before: then nothing is known before ``KNOWN_WHILE_STEPPING`` times as long, for a tenth of a second may lie
    between two steps.
    """

    def __init__(
        self,
        target: float,
        min_samples: int,
        min_time_s: float,
        max_time_s: float,
        resolution_s: float,
        clock_moves: bool = False,
    ) -> None:
        self._target, self._min_samples = target, min_samples
        self._max_time_s, self._known_in_cycles_s = max_time_s, min(KNOWN_IN_CYCLES * min_time_s, max_time_s)
        self._min_time_s = min(KNOWN_WHILE_STEPPING * min_time_s, max_time_s) if clock_moves else min_time_s
        self._resolution_s = resolution_s
        self._samples: list[float] = []
        self._cycles: list[float] = []
        self._own_s = self._total_s = 0.0
        self._interval: Interval | None = None
        self._interval_cycles: Interval | None = None
        self._looked_at = 0
        self._converged = False

    @property
    def samples(self) -> Sequence[float]:
        """Everything fed so far, in order."""
        return self._samples

    @property
    def interval(self) -> Interval | None:
        """The interval at the last look, per sample and at least one step of the timer wide; ``None`` with one sample.

        Of ``FEWEST_WITH_A_RANGE`` or more that are not narrow enough it is no wider than their range.
        """
        return self._interval

    @property
    def interval_cycles(self) -> Interval | None:
        """The same of the samples' cycles; ``None`` where one of them was not counted."""
        return self._interval_cycles

    @property
    def converged(self) -> bool:
        """Whether the last look met the target, or the timer's floor, in time or in cycles."""
        return self._converged

    def next_count(self) -> int:
        """How many samples to take before looking again: at least one."""
        if not self._samples:
            return 1  # the first only tells how long one takes
        per_sample_s = max(self._total_s / len(self._samples), 1e-9)
        wanted = max(self._min_samples, int(self._min_time_s / per_sample_s) + 1, int(self._looked_at * LOOK_GROWTH))
        affordable = int((self._max_time_s - self._total_s) / per_sample_s)
        return max(1, min(wanted - len(self._samples), affordable))

    def feed(self, durations_s: Sequence[float], elapsed_s: float, cycles: Sequence[float] = ()) -> None:
        """Add samples in the order taken; ``elapsed_s`` is the wall time they cost, untimed flushes included.

        ``cycles`` are those of each, where the device's clock is counted.
        """
        self._samples.extend(durations_s)
        self._cycles.extend(cycles)
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
        if self._looked_at < 2:
            return
        self._interval, in_time = self._found(self._samples, self._resolution_s)
        in_cycles = False
        if len(self._cycles) == len(self._samples):
            step = self._resolution_s * median(self._cycles) / median(self._samples)
            self._interval_cycles, in_cycles = self._found(self._cycles, step)
        self._converged = in_time or (in_cycles and self._sampled_s >= self._known_in_cycles_s)

    def _found(self, values: Sequence[float], step: float) -> tuple[Interval, bool]:
        """The interval to tell of, and whether it is narrow enough."""
        interval = median_interval(values, step)
        narrow = narrow_enough(interval, median(values), self._target, step)
        if narrow or len(values) < FEWEST_WITH_A_RANGE:
            return interval, narrow
        return interval.within(*Interval(min(values), max(values)).widened(step)), False

    @property
    def _sampled_s(self) -> float:
        return max(self._own_s, self._total_s)

    def _ripe(self) -> bool:
        enough = len(self._samples) >= max(self._min_samples, int(self._looked_at * LOOK_GROWTH))
        return enough and self._sampled_s >= self._min_time_s
