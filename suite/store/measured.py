"""A measurement taken apart into columns and blobs, and put together again without loss."""

import zlib
from collections.abc import Mapping
from itertools import chain
from typing import Any

from suite.backend import Channel
from suite.measure.samples import decode, encode
from suite.measurement import TIMED, UNREAD, Check, Measurement, SampleSet, Span
from suite.outcome import Outcome
from suite.store.columns import refuse_non_count, refuse_non_number, refuse_non_text
from suite.store.damage import json_object, one_line
from suite.store.plausible import PAIRS, RANGES, Range, refuse_beyond, refuse_crossed, refuse_implausible
from suite.store.telemetry import pack, unpack_plausible

Columns = Mapping[Any, Any]  # one row, by column name

# Fields that are columns of the same name.
_PLAIN = ("reason", "execution", "converged", "steady", "contended", "peak_memory_bytes")
_NANOSECONDS = Range(0.0, 2.0**63, 0.0)
_SAMPLE_PLAIN = ("launches", "resolution_s", "count", "sum_ns", "min_ns", "median_ns", "stride", "median_cycles")


def result_columns(measurement: Measurement) -> dict[str, Any]:
    """The columns of ``result`` that come from a measurement."""
    low, high = measurement.interval_s or (None, None)
    low_cycles, high_cycles = measurement.interval_cycles or (None, None)
    return {
        **{name: getattr(measurement, name) for name in _PLAIN},
        "outcome": measurement.outcome.value,
        "interval_low_s": low,
        "interval_high_s": high,
        "interval_low_cycles": low_cycles,
        "interval_high_cycles": high_cycles,
        "method": measurement.samples.method if measurement.samples else None,
        "error_rel": worst_error(measurement),
        "check_before": measurement.check_before.to_json() if measurement.check_before else None,
        "check_after": measurement.check_after.to_json() if measurement.check_after else None,
        "phases_s": dict(measurement.phases_s),
        "description": dict(measurement.description),
    }


def worst_error(measurement: Measurement) -> float | None:
    """The larger relative error of the two checks."""
    checks = (measurement.check_before, measurement.check_after)
    return max((check.error_rel for check in checks if check is not None and check.error_rel is not None), default=None)


def sample_columns(samples: SampleSet) -> dict[str, Any]:
    """The columns of ``sample_blob``; the method is a column of ``result``, where lists show it."""
    return {
        **{name: getattr(samples, name) for name in _SAMPLE_PLAIN},
        "durations": encode(samples.durations_ns),
        "clocks": encode(samples.clocks_khz) if samples.clocks_khz else None,
        "boundaries": list(samples.boundaries),
        "details": dict(samples.details),
        "spans": [list(span) for span in samples.spans],
    }


def telemetry_blob(measurement: Measurement) -> bytes | None:
    """The packed channels, without the readings that were missing; ``None`` where no telemetry was taken."""
    return pack(measurement.as_read().telemetry) if measurement.telemetry else None


def rebuild_measurement(result: Columns, samples: Columns | None, telemetry: bytes | None) -> Measurement:
    """Put a measurement together from its rows; ``ValueError`` where samples cannot be decoded or a row is not whole.

    Telemetry that is damaged costs the telemetry alone: in its place is one channel ``UNREAD`` that says why.
    """
    known = read_columns(result)
    if known["outcome"] in TIMED and not samples:
        raise ValueError("it was timed, but has no samples")
    return Measurement(
        samples=rebuild_samples(samples, result["method"]) if samples else None,
        telemetry=_channels(telemetry) if telemetry is not None else {},
        **known,
    )


def _channels(blob: bytes) -> dict[str, Channel]:
    try:
        return unpack_plausible(blob)
    except ValueError as error:
        return {
            UNREAD: Channel(
                "", (), (), f"it cannot be read ({one_line(str(error))}); `roofbench store check` lists what is wrong"
            )
        }


def read_columns(result: Columns) -> dict[str, Any]:
    """The fields of a measurement that a ``result`` row has; ``ValueError`` where they say nothing."""
    _refuse_misfits(result)
    return {
        "outcome": Outcome(result["outcome"]),
        "interval_s": _ends(result["interval_low_s"], result["interval_high_s"]),
        "interval_cycles": _ends(result["interval_low_cycles"], result["interval_high_cycles"]),
        "check_before": _check(result["check_before"]),
        "check_after": _check(result["check_after"]),
        "phases_s": _numbers(result["phases_s"]),
        "description": json_object(result["description"], "description"),
        **{name: result[name] for name in _PLAIN},
    }


def _refuse_misfits(result: Columns) -> None:
    for name in chain.from_iterable(PAIRS):
        if result[name] is not None:
            refuse_implausible(name, result[name])
    refuse_crossed(result)
    for name in ("flops", "compulsory_bytes"):
        _refuse_named(name, RANGES[name], result[name])
    if result["peak_memory_bytes"] is not None:
        refuse_non_count(result["peak_memory_bytes"], "peak_memory_bytes")


def rebuild_samples(columns: Columns, method: str) -> SampleSet:
    """Undo ``sample_columns``."""
    for name in ("count", "sum_ns", "min_ns"):
        refuse_non_count(columns[name], name)
    for name in ("launches", "stride"):  # by which is divided
        refuse_non_count(columns[name], name, least=1)
    _refuse_odd_times(columns)
    durations_ns, clocks_khz = _decoded(columns["durations"]), _decoded(columns["clocks"]) if columns["clocks"] else ()
    if clocks_khz and len(clocks_khz) != len(durations_ns):
        raise ValueError(f"{len(durations_ns)} samples are kept, and {len(clocks_khz)} clocks")
    return SampleSet(
        durations_ns=durations_ns,
        boundaries=_boundaries(columns["boundaries"]),
        details=json_object(columns["details"], "details"),
        spans=_spans(columns["spans"]),
        clocks_khz=clocks_khz,
        method=method,
        **{name: columns[name] for name in _SAMPLE_PLAIN},
    )


def _refuse_odd_times(columns: Columns) -> None:
    for name, limits in (
        ("resolution_s", RANGES["p05_s"]),
        ("median_ns", _NANOSECONDS),
        ("median_cycles", RANGES["p50_cycles"]),
    ):
        value = columns[name]
        if value is None and name != "resolution_s":
            continue
        refuse_non_number(value)
        _refuse_named(name, limits, value)


def _refuse_named(name: str, limits: Range, value: float) -> None:
    try:
        refuse_beyond(limits, value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _boundaries(stored: object) -> tuple[int, ...]:
    if not isinstance(stored, list):
        raise ValueError("boundaries is no list")
    for index in stored:
        refuse_non_count(index, "a boundary")
    return tuple(stored)


def _check(stored: Any) -> Check | None:
    if not stored:
        return None
    check = Check.from_json(stored)
    refuse_non_number(check.tolerance)
    for error in (check.error_rel, check.projection_error):
        if error is not None:
            refuse_non_number(error)
    for name in ("unwritten", "nonfinite"):
        refuse_non_count(getattr(check, name), name)
    refuse_non_text(check.reason)
    return check


def _ends(low: float | None, high: float | None) -> tuple[float, float] | None:
    return (low, high) if low is not None and high is not None else None


def _spans(stored: object) -> tuple[Span, ...]:
    if not isinstance(stored, list):
        raise ValueError("spans is no list")
    spans = []
    for span in stored:
        if not isinstance(span, list) or len(span) != len(Span._fields) or type(span[0]) is not int:
            raise ValueError(f"{str(span)[:40]} is no span of samples")
        for number in span:
            refuse_non_number(number)
        spans.append(Span(*span))
    return tuple(spans)


def _numbers(stored: object) -> dict[str, float]:
    found = json_object(stored, "phases_s")
    for seconds in found.values():
        refuse_non_number(seconds)
    return found


def _decoded(blob: bytes) -> tuple[int, ...]:
    try:
        return tuple(decode(blob))
    except zlib.error as error:
        raise ValueError(f"not a block of samples: {error}") from error
