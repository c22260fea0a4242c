"""When each sample was taken, on the clock that telemetry counts on too."""

import heapq
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from suite.measurement import SampleSet, Span

# As many as an alternating measurement may have rounds and a burst windows; each takes about 40 bytes of a store.
SPANS_AT_MOST = 1000


def sample_times_s(samples: SampleSet) -> list[float]:
    """Seconds from the opening of the first telemetry window to the start of each kept sample; empty without spans.

    A span's samples are spread evenly over it: flushes and refills between them, which are in no duration, are then
    where they were.
    """
    if not samples.spans:
        return []
    firsts = [span.first for span in samples.spans]
    ends = [*firsts[1:], samples.count]
    times_s = []
    for kept in range(len(samples.durations_ns)):
        index = kept * samples.stride
        at = bisect_right(firsts, index) - 1
        span = samples.spans[at]
        share = (index - span.first) / max(ends[at] - span.first, 1)
        times_s.append(span.began_s + share * (span.ended_s - span.began_s))
    return times_s


def sampling_s(samples: SampleSet) -> float | None:
    """Seconds spent sampling, warm-up, settling and idle times excluded; ``None`` without spans."""
    return sum(span.ended_s - span.began_s for span in samples.spans) if samples.spans else None


def joined_spans(spans: Sequence[Span], most: int = SPANS_AT_MOST) -> tuple[Span, ...]:
    """At most ``most`` spans: those that follow each other most closely become one.

    Calls of one window follow each other within microseconds, so that what a joined span covers beside its samples is next
    to nothing.  Only where there are more windows than spans are windows joined too, with the idle time between them.
    """
    excess = len(spans) - most
    gaps = [(after.began_s - before.ended_s, index) for index, (before, after) in enumerate(pairwise(spans), start=1)]
    inner = {index for _, index in heapq.nsmallest(excess, gaps)} if excess > 0 else set()
    starts = [index for index in range(len(spans)) if index not in inner]
    ends = [*starts[1:], len(spans)]
    return tuple(spans[start]._replace(ended_s=spans[end - 1].ended_s) for start, end in zip(starts, ends, strict=True))


def span_flaws(samples: SampleSet) -> Iterator[str]:
    """Why the spans cannot be those of the samples: each begins with a later sample than the one before, and after its end."""
    spans = samples.spans
    if len(spans) > SPANS_AT_MOST:
        yield f"there are {len(spans)} of them, more than {SPANS_AT_MOST}"
    if spans and (spans[0].first != 0 or spans[-1].first >= samples.count):
        yield f"they begin with samples {spans[0].first} to {spans[-1].first} of {samples.count}"
    if any(before.first >= after.first for before, after in pairwise(spans)):
        yield "their samples are not in order"
    times_s = [0.0, *(time_s for span in spans for time_s in (span.began_s, span.ended_s))]
    if any(before > after for before, after in pairwise(times_s)):
        yield "their times are not in order"
