"""The samples of one case as they are taken: in batches, each call with when it was under way."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from suite.backend import Sampler
from suite.measure.samples import thin
from suite.measure.statistics import median
from suite.measure.timeline import joined_spans
from suite.measurement import SampleSet, Span

DIGITS = 9  # of a second: nanoseconds, as samples have


class Taken(NamedTuple):
    """What one call of a sampler gave, and when it was called and returned, on the monotonic clock."""

    durations_ns: Sequence[int]
    began_s: float
    ended_s: float

    @property
    def elapsed_s(self) -> float:
        """Wall time of the call, untimed flushes included."""
        return self.ended_s - self.began_s


def take(sampler: Sampler, count: int) -> Taken:
    """Take ``count`` samples, keeping time."""
    began_s = time.monotonic()
    durations_ns = sampler.sample(count)
    return Taken(durations_ns, began_s, time.monotonic())


class Collected:
    """Batches of samples in the order they were taken."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
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
        self._spans.append(Span(self._count, taken.began_s, taken.ended_s))
        self._count += len(taken.durations_ns)

    def sample_set(self, sampler: Sampler, opened_s: float) -> SampleSet:
        """Everything taken; times count from ``opened_s`` on the monotonic clock, when the first telemetry window opened."""
        durations = [duration for batch in self.batches for duration in batch]
        kept, stride = thin(durations)
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
        )


def _since(span: Span, opened_s: float) -> Span:
    return Span(span.first, round(span.began_s - opened_s, DIGITS), round(span.ended_s - opened_s, DIGITS))


def _boundaries(batches: Sequence[Sequence[int]], stride: int) -> tuple[int, ...]:
    starts, position = [], 0
    for batch in batches:
        starts.append(-(-position // stride))
        position += len(batch)
    return tuple(starts) or (0,)
