"""What the samples of a result, kept and counted, say of each other: where they do not agree, something else wrote them."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from suite.measure.samples import KEPT_AT_MOST, cycles
from suite.measure.statistics import median
from suite.measure.timeline import span_flaws
from suite.measurement import SampleSet

NS = 1e-9
FASTEST_KHZ = 10**9  # a terahertz
ROUNDING = 1e-6  # of a median in the store against that of the samples, which are whole nanoseconds and kHz
# Of the spread of all samples, by which an interval may pass their median: seven where it is told from two of them.
FARTHEST = 10.0
WITHIN = 0.01  # of the median: an interval no wider says nothing odd, however equal the samples are


def sample_flaws(samples: SampleSet) -> Iterator[str]:
    """Each thing that cannot be, one line each."""
    yield from _count_flaws(samples)
    yield from _boundary_flaws(samples)
    yield from _clock_flaws(samples)
    yield from (f"of its samples' spans, {flaw}" for flaw in span_flaws(samples))


def interval_flaws(samples: SampleSet, name: str, ends: tuple[float, float] | None) -> Iterator[str]:
    """Why an interval, of seconds or cycles of one launch, cannot be that of the median of these samples."""
    values = list(_cycles(samples)) if name == "cycles" else [each * NS for each in samples.durations_ns]
    if ends is None or not values or samples.stride > 1:  # of what was thinned the extremes are not kept
        return
    step = samples.resolution_s * (median(values) / median(samples.durations_ns) / NS if any(samples.durations_ns) else 0.0)
    center, reach = median(values), FARTHEST * (max(values) - min(values)) + step
    low, high = ((each * samples.launches) for each in ends)
    reach += WITHIN * center
    if low < center - reach or high > center + reach:
        yield f"its interval of {name}, {ends[0]:g} to {ends[1]:g}, is not that of its samples"


def _count_flaws(samples: SampleSet) -> Iterator[str]:
    kept, whole = samples.durations_ns, samples.stride == 1
    below = samples.median_ns is not None and samples.median_ns < samples.min_ns
    is_other_number = len(kept) != -(-samples.count // samples.stride) or len(kept) > KEPT_AT_MOST
    is_other_sum = whole and (sum(kept), min(kept, default=0)) != (samples.sum_ns, samples.min_ns)
    if not kept or is_other_number or is_other_sum or below or min(kept) < samples.min_ns:
        yield "its samples are not those that were counted"
    elif whole and samples.median_ns is not None and _differs(samples.median_ns, median(kept)):
        yield "its median is not that of its samples"


def _boundary_flaws(samples: SampleSet) -> Iterator[str]:
    starts = samples.boundaries
    in_order = all(before < after for before, after in pairwise(starts))
    if not starts or starts[0] != 0 or not in_order or starts[-1] >= samples.count:
        yield f"its {samples.count} samples cannot be in batches that begin with {_some(starts)}"


def _clock_flaws(samples: SampleSet) -> Iterator[str]:
    clocks = samples.clocks_khz
    if samples.median_cycles is not None and not clocks:
        yield "it has a median of cycles, and no clock of its samples"
    if not clocks:
        return
    if not all(1 <= clock <= FASTEST_KHZ for clock in clocks):
        yield f"a clock of its samples is none: they are {min(clocks)} to {max(clocks)} kHz"
    elif samples.median_cycles is None:
        yield "it has clocks of its samples, and no median of cycles"
    else:
        known = list(_cycles(samples))
        exact = samples.stride == 1 and _differs(samples.median_cycles, median(known))
        if exact or not min(known) * (1 - ROUNDING) <= samples.median_cycles <= max(known) * (1 + ROUNDING):
            yield "its median of cycles is not that of its samples by their clocks"


def _cycles(samples: SampleSet) -> Iterator[float]:
    return (cycles(*each) for each in zip(samples.durations_ns, samples.clocks_khz, strict=False))


def _differs(stored: float, found: float) -> bool:
    return abs(stored - found) > ROUNDING * max(abs(found), 1.0)


def _some(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:5])) + (", ..." if len(numbers) > 5 else "")
