"""When each sample was taken, on the clock that telemetry counts on too."""

from bisect import bisect_right

from suite.measurement import SampleSet


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
