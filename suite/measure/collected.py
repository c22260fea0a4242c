"""The samples of one case as they are taken: in batches, each call with when it was under way."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from suite.backend import Counting, Sampler
from suite.measure.samples import cycles, thin
from suite.measure.statistics import median
from suite.measure.timeline import joined_spans
from suite.measurement import SampleSet, Span

DIGITS = 9  # of a second: nanoseconds, as samples have


class Taken(NamedTuple):
    """What one call of a sampler gave, and when it was called and returned, on the monotonic clock.

    ``clocks_khz`` is the device's own clock over each of the samples, empty where it is not counted.
    """

    durations_ns: Sequence[int]
    began_s: float
    ended_s: float
    clocks_khz: Sequence[int] = ()

    @property
    def cycles(self) -> list[float]:
        """Those of each sample; empty where the clock was not counted over every one."""
        counted = len(self.clocks_khz) == len(self.durations_ns)
        return [cycles(*each) for each in zip(self.durations_ns, self.clocks_khz, strict=True)] if counted else []

    @property
    def elapsed_s(self) -> float:
        """Wall time of the call, untimed flushes included."""
        return self.ended_s - self.began_s


def take(sampler: Sampler, count: int) -> Taken:
    """Take ``count`` samples, keeping time."""
    began_s = time.monotonic()
    durations_ns = sampler.sample(count)
    ended_s = time.monotonic()
    return Taken(durations_ns, began_s, ended_s, sampler.clocks_khz() if isinstance(sampler, Counting) else ())


class Collected:
    """Batches of samples in the order they were taken."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self._clocks_khz: list[int] = []
        self._spans: list[Span] = []  # on the monotonic clock
        self._count = 0

    def begin_batch(self) -> None:
        """What is added from here on belongs to a round or window of its own."""
        self.batches.append([])

    def add(self, taken: Taken) -> None:
        """Add what one call gave to the latest batch."""
        if not taken.durations_ns:
            return
        self.batches[-1].extend(taken.durations_ns)
        self._clocks_khz.extend(taken.clocks_khz)
        self._spans.append(Span(self._count, taken.began_s, taken.ended_s))
        self._count += len(taken.durations_ns)

    @property
    def batches_cycles(self) -> list[list[float]]:
        """The cycles of every sample, batch by batch; empty where the clock was not counted over each of them."""
        if not self._clocks_khz or len(self._clocks_khz) != sum(map(len, self.batches)):
            return []
        clocks_khz = iter(self._clocks_khz)
        return [[cycles(duration, next(clocks_khz)) for duration in batch] for batch in self.batches]

    def sample_set(self, sampler: Sampler, opened_s: float) -> SampleSet:
        """Everything taken; times count from ``opened_s`` on the monotonic clock, when the first telemetry window opened."""
        durations = [duration for batch in self.batches for duration in batch]
        kept, stride = thin(durations)
        of_samples = [each for batch in self.batches_cycles for each in batch]
        return SampleSet(
            durations_ns=tuple(kept),
            launches=sampler.launches,
            method=sampler.method,
            resolution_s=sampler.resolution_s,
            count=len(durations),
            sum_ns=sum(durations),
            min_ns=min(durations),
            median_ns=median(durations),
            stride=stride,
            boundaries=_boundaries(self.batches, stride),
            details=dict(sampler.details),
            spans=tuple(_since(span, opened_s) for span in joined_spans(self._spans)),
            clocks_khz=tuple(self._clocks_khz[::stride]) if of_samples else (),
            median_cycles=median(of_samples) if of_samples else None,
        )


def _since(span: Span, opened_s: float) -> Span:
    return Span(span.first, round(span.began_s - opened_s, DIGITS), round(span.ended_s - opened_s, DIGITS))


def _boundaries(batches: Sequence[Sequence[int]], stride: int) -> tuple[int, ...]:
    starts, position = [], 0
    for batch in batches:
        starts.append(-(-position // stride))
        position += len(batch)
    return tuple(starts) or (0,)
