"""What a worker handed over is looked at before it counts: a backend's mistake ends its own case, not the run."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from suite.measure.timeline import span_flaws
from suite.measurement import Check, Measurement, SampleSet, Span
from suite.outcome import Outcome
from suite.reason import one_line

EXECUTIONS = ("native", "emulated")
LONGEST_NS = 2**62  # 146 years; differences and the store's integers are signed 64-bit
LARGEST_COUNT = 2**63 - 1
FASTEST_KHZ = 10**9  # a terahertz


def examined(measurement: Measurement) -> Measurement:
    """Return the measurement with its reason as one line; as an ``error`` without samples where something in it cannot be."""
    flaw = next(_flaws(measurement), None)
    if flaw is None:
        return replace(measurement, reason=one_line(measurement.reason))
    return Measurement(Outcome.ERROR, one_line(f"the backend's measurement cannot be used: {flaw}"))


def _flaws(measurement: Measurement) -> Iterator[str]:
    if type(measurement.reason) is not str:
        yield "its reason is no text"
    if measurement.execution not in EXECUTIONS:
        yield f"execution is {measurement.execution!r}, not one of {', '.join(EXECUTIONS)}"
    for name in ("converged", "steady", "contended"):
        if not isinstance(getattr(measurement, name), bool | None):
            yield f"{name} is {getattr(measurement, name)!r}, not true, false or unknown"
    if measurement.peak_memory_bytes is not None and not _count(measurement.peak_memory_bytes, 0):
        yield f"peak_memory_bytes is {measurement.peak_memory_bytes!r}"
    if measurement.interval_s is not None and not _interval(measurement.interval_s):
        yield f"interval_s is {measurement.interval_s!r}"
    if measurement.interval_cycles is not None and not _interval(measurement.interval_cycles):
        yield f"interval_cycles is {measurement.interval_cycles!r}"
    if measurement.samples is not None:
        yield from _sample_flaws(measurement.samples)
    for check in (measurement.check_before, measurement.check_after):
        if check is not None and not _plain_check(check):
            yield f"a check is {check!r}"
    yield from _other_flaws(measurement)


def _sample_flaws(samples: SampleSet) -> Iterator[str]:
    """In this order: what follows relies on what was looked at before."""
    if not samples.durations_ns:
        yield "it has no samples"
    for index, duration in enumerate(samples.durations_ns):
        if not _count(duration, 0, LONGEST_NS):
            yield f"kept sample {index} lasted {duration!r} ns"
    if sum(samples.durations_ns) > LARGEST_COUNT:
        yield "its samples last longer together than 64 bits can hold"
    for name, least in (("launches", 1), ("count", len(samples.durations_ns)), ("stride", 1), ("sum_ns", 0), ("min_ns", 0)):
        if not _count(getattr(samples, name), least):
            yield f"{name} of its samples is {getattr(samples, name)!r}"
    if samples.median_ns is not None and not (_number(samples.median_ns) and samples.min_ns <= samples.median_ns):
        yield f"median_ns of its samples is {samples.median_ns!r}"
    if samples.clocks_khz and len(samples.clocks_khz) != len(samples.durations_ns):
        yield f"of its samples {len(samples.durations_ns)} are kept, and {len(samples.clocks_khz)} clocks"
    for index, clock in enumerate(samples.clocks_khz):
        if not _count(clock, 1, FASTEST_KHZ):
            yield f"the clock of kept sample {index} is {clock!r} kHz"
    if samples.median_cycles is not None and not (_number(samples.median_cycles) and samples.median_cycles > 0):
        yield f"median_cycles of its samples is {samples.median_cycles!r}"
    if not isinstance(samples.method, str) or not _number(samples.resolution_s) or not _json(samples.details):
        yield "its samples name no method, no finite resolution or no details"
    if not all(_count(boundary, 0) for boundary in samples.boundaries):
        yield f"its batches start at {samples.boundaries!r}"
    if not all(map(_plain_span, samples.spans)):
        yield "its spans hold what is no count of samples or no finite time"
    yield from (f"of its spans, {flaw}" for flaw in span_flaws(samples))


def _other_flaws(measurement: Measurement) -> Iterator[str]:
    if not _json(measurement.description):
        yield "its description holds what JSON does not have"
    if not all(_number(spent_s) for spent_s in measurement.phases_s.values()):
        yield f"phases_s is {measurement.phases_s!r}"
    for name, channel in measurement.telemetry.items():
        if len(channel.times_s) != len(channel.values) or not all(map(_number, (*channel.times_s, *channel.values))):
            yield f"channel {name} of its telemetry has no finite value for each time"


def _count(value: Any, least: int, most: int = LARGEST_COUNT) -> bool:
    return type(value) is int and least <= value <= most


def _number(value: Any) -> bool:
    """Whether a double holds it: no NaN, no infinity, no integer beyond."""
    return type(value) in (int, float) and -sys.float_info.max <= value <= sys.float_info.max


def _interval(value: Any) -> bool:
    return len(value) == 2 and all(map(_number, value)) and value[0] <= value[1]


def _plain_span(span: Span) -> bool:
    return _count(span.first, 0) and _number(span.began_s) and _number(span.ended_s)


def _plain_check(check: Check) -> bool:
    known = all(each is None or _number(each) for each in (check.error_rel, check.projection_error))
    counts = _count(check.unwritten, 0) and _count(check.nonfinite, 0)
    return known and counts and _number(check.tolerance) and isinstance(check.passed, bool) and isinstance(check.reason, str)


def _json(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
