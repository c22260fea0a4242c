"""The JSON that nccl-tests write with ``-J`` (file version 3), and rccl-tests after them.

The writer streams, so that a killed run leaves a document without an end.  Truth values are the strings ``true`` and ``false``,
the root is padded, ``errors`` of a clean run is one empty string, and ``nwrong`` is null where nothing was checked.  Of each
process only the first device is listed.  The environment that it also holds is not read: it may have secrets.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeGuard

from suite.collectives.names import Op, op_of
from suite.collectives.number_format import format_of_tests
from suite.collectives.version import NcclVersion
from suite.importers.inference import known_world
from suite.importers.json_stream import Document
from suite.importers.rows import Checked, CollectiveLog, CollectiveRow, Device, IterationTimes, LogStatus
from suite.importers.unproven import as_unchecked, contradiction

US, GB, PERCENT = 1e-6, 1e9, 1e-2
_HALVES = {"out_of_place": False, "in_place": True}
_DAMAGED = (KeyError, TypeError, ValueError, OverflowError)  # what reading a row raises that lacks a number


def is_nccl_tests_json(value: Any) -> bool:
    """Whether a document is one of these."""
    return isinstance(value, dict) and "version" in value and "args" in value


def read_nccl_tests_json(document: Document) -> CollectiveLog:
    """One run; rows without a timing are those that were running when it ended."""
    value: Mapping[str, Any] = document.value
    config = _object(value.get("config"))
    results = [result for result in _list(value.get("results")) if isinstance(result, dict)]
    devices = tuple(_devices(config))
    ranks = _ranks(config, devices)
    op = _op(value, results)
    rows = tuple(row for result in results for row in _rows(result, op, ranks))
    out_of_bounds = _count(_object(value.get("out_of_bounds")).get("count"))
    unproven = contradiction(rows, _count(config.get("validation")), out_of_bounds)
    rows = as_unchecked(rows) if unproven else rows
    average = _number(_object(value.get("average_bus_bandwidth")).get("bandwidth"))
    log = CollectiveLog(
        tool="nccl-tests",
        library_version=str(NcclVersion.of_code(code)) if isinstance(code := value.get("nccl_version"), int) else None,
        op=op,
        op_source=None if op is None else "program",
        ranks=ranks,
        ranks_source=None if ranks is None else "device list",
        parameters={name: each for name, each in config.items() if isinstance(each, int | str)},
        devices=devices,
        rows=rows,
        average_busbw_bytes_s=None if average is None else average * GB,
        out_of_bounds=out_of_bounds,
        status=_status(document, rows, _ended(results)),
    )
    return replace(log, warnings=tuple(filter(None, (unproven, *_warnings(document, results, log)))))


def _status(document: Document, rows: tuple[CollectiveRow, ...], ended: int) -> LogStatus:
    if not document.closed or "end_time" not in document.value:
        return LogStatus.ABORTED
    if 0 < len(rows) < ended:
        return LogStatus.PARTIAL
    return LogStatus.COMPLETE if rows else LogStatus.EMPTY


def _op(value: Mapping[str, Any], results: list[dict[str, Any]]) -> Op | None:
    named = [str(result["experiment_name"]) for result in results if "experiment_name" in result]
    program = named[0] if named else str(next(iter(_list(value.get("args"))), "")).rsplit("/", 1)[-1]
    return op_of(program)


def _devices(config: Mapping[str, Any]) -> Iterator[Device]:
    names = ("rank", "group", "pid", "hostname", "device", "device_hex", "device_info")
    for each in map(_object, _list(config.get("devices"))):
        if all(name in each for name in names):
            yield Device(*(each[name] for name in names))


def _ranks(config: Mapping[str, Any], devices: tuple[Device, ...]) -> int | None:
    """The first rank of the last process, and as many as a process has."""
    if not devices:
        return None
    with suppress(*_DAMAGED):
        return known_world(int(max(device.rank for device in devices) + config.get("nthreads", 1) * config.get("ngpus", 1)))
    return None


def _rows(result: Mapping[str, Any], op: Op | None, ranks: int | None) -> Iterator[CollectiveRow]:
    for key, in_place in _HALVES.items():
        half = result.get(key)
        if _has_ended(half):
            with suppress(*_DAMAGED):
                yield _row(result, half, result.get(f"{key}_per_iter"), in_place, op, ranks)


def _ended(results: list[dict[str, Any]]) -> int:
    """How many halves of the table the tool has written to their end."""
    return sum(_has_ended(result.get(key)) for result in results for key in _HALVES)


def _has_ended(half: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a half has the last that is written of it: without it the text is cut there."""
    return isinstance(half, dict) and "nwrong" in half


def _row(
    result: Mapping[str, Any], half: Mapping[str, Any], single: Any, in_place: bool, op: Op | None, ranks: int | None
) -> CollectiveRow:
    time, wrong = _number(half.get("time", half.get("cpu_time"))), _number(half.get("nwrong"))
    algbw, busbw = _number(half.get("alg_bw")), _number(half["bus_bw"])
    no_bandwidth = ranks == 1 or not result["size"]
    return CollectiveRow(
        op=op,
        format=format_of_tests(str(result["type"])),
        size_bytes=int(result["size"]),
        count=int(result["count"]),
        redop=str(result["redop"]),
        root=int(result["root"]),
        in_place=in_place,
        ranks=ranks,
        time_s=None if time is None else time * US,
        algbw_bytes_s=None if algbw is None or no_bandwidth else algbw * GB,
        busbw_bytes_s=None if busbw is None or no_bandwidth else busbw * GB,
        wrong=None if wrong is None else int(wrong),
        checked=Checked.UNCHECKED if wrong is None else Checked.BAD if wrong else Checked.GOOD,
        iterations=_iterations(single),
        extra=(("time", "cputime"),) if "cpu_time" in half else (),
    )


def _iterations(single: Any) -> IterationTimes | None:
    if not isinstance(single, dict):
        return None
    found = [_number(single.get(name)) for name in ("min_us", "max_us", "p99_us", "cv_pct")]
    least, most, p99, cv = found
    if least is None or most is None or p99 is None or cv is None:
        return None
    return IterationTimes(least * US, most * US, p99 * US, cv * PERCENT)


def _object(value: Any) -> Mapping[str, Any]:
    """An object; an empty one in place of anything else, as of what is not there."""
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    """Finite numbers; what is not a number is written as the string ``nan``, and a truth value is none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if math.isfinite(value) else None


def _warnings(document: Document, results: list[dict[str, Any]], log: CollectiveLog) -> Iterator[str]:
    untimed = sum("in_place" not in result and "out_of_place" not in result for result in results)
    if log.status is LogStatus.ABORTED:
        yield f"the document has no end: the run was killed{f', {untimed} size without a timing dropped' if untimed else ''}"
    if log.ranks == 1 and log.rows:
        yield "a single rank: nothing crossed a link, so that no row has a bandwidth"
    ended = _ended(results)
    if ended > len(log.rows):
        yield f"{ended - len(log.rows)} of {ended} rows lack a number or have a word where one must be, dropped"
    bad = sum(row.checked is Checked.BAD for row in log.rows)
    unchecked = sum(row.checked is Checked.UNCHECKED for row in log.rows)
    if bad or log.out_of_bounds:
        yield f"wrong results: {bad} of {len(log.rows)} rows, {log.out_of_bounds or 0} values out of bounds"
    if unchecked:
        yield f"{unchecked} of {len(log.rows)} rows were not checked"
    for error in _list(document.value.get("errors")):
        if error:
            yield f"the tool reports: {error}"
