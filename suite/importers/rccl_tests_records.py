"""The files that rccl-tests write with ``-x``: one record a timing, as JSON (``-Z json``) or CSV (``-Z csv``).

    2024   {"#wrong": "0", "gpus": 4, ...} or {"nodes": ..., "ranks": ..., ..., "wrong": "0"}, an object a line and no list
    2025   the same in one list; CSV with plain separators

Built with MPI the CSV names 13 columns and writes 14: ``nodes`` stands before ``ranks`` in the rows and not in the heading.
Counts of wrong elements are strings, ``N/A`` where nothing was checked.
"""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from suite.collectives.bandwidth import busbw_factor
from suite.collectives.names import Op, op_of
from suite.collectives.number_format import format_of_tests
from suite.importers.json_stream import Document
from suite.importers.rows import Checked, CollectiveLog, CollectiveRow, LogStatus

US, GB = 1e-6, 1e9
_NEEDED = ("size", "type", "inplace", "time", "algbw", "busbw")
Record = Mapping[str, str]


class _Dropped(NamedTuple):
    """How many records are no rows: ``cut`` were not whole, ``repeated`` stand there before, to the last digit."""

    cut: int
    repeated: int


def is_record(value: Any) -> bool:
    """Whether an object of a JSON file is such a record."""
    return isinstance(value, dict) and {name.lower() for name in value}.issuperset(_NEEDED)


def is_rccl_tests_csv(text: str) -> bool:
    """Whether the first line of a text is the heading of such a file."""
    return set(_NEEDED) <= {name.strip().lower() for name in text.lstrip().split("\n", 1)[0].split(",")}


def read_rccl_tests_json(found: Sequence[Document]) -> tuple[CollectiveLog, ...]:
    """Read the documents of a file: one list, or an object each."""
    values = [
        value for document in found for value in (document.value if isinstance(document.value, list) else [document.value])
    ]
    records = [{name.lower(): str(value) for name, value in each.items()} for each in values if is_record(each)]
    closed = all(document.closed for document in found)
    cut = len(values) - len(records)
    return _logs(records, LogStatus.COMPLETE if closed else LogStatus.ABORTED, cut)


def read_rccl_tests_csv(text: str) -> tuple[CollectiveLog, ...]:
    """Read a file with a heading; a last line that is cut is dropped."""
    table = [line for line in csv.reader(io.StringIO(text), skipinitialspace=True) if line]
    names = [name.strip().lower() for name in table[0]]
    with_nodes = _with_nodes(names)
    records: list[Record] = []
    for line in table[1:]:
        columns = names if len(line) == len(names) else with_nodes
        if len(line) == len(columns):
            records.append(dict(zip(columns, (cell.strip() for cell in line), strict=True)))
    if not text.endswith("\n") and records and len(table) == len(records) + 1:
        records = records[:-1]  # nothing tells whether its last number is whole
    cut = len(table) - 1 - len(records)
    return _logs(records, LogStatus.PARTIAL if cut else LogStatus.COMPLETE, cut)


def _with_nodes(names: Sequence[str]) -> list[str]:
    if "ranks" not in names or "nodes" in names:
        return list(names)
    index = names.index("ranks")
    return [*names[:index], "nodes", *names[index:]]


def _logs(records: Sequence[Record], status: LogStatus, cut: int) -> tuple[CollectiveLog, ...]:
    """One log for each operation and world; a record with a word where a number must be is dropped, as one that is cut."""
    rows, damaged = [], 0
    once = {tuple(sorted(record.items())): record for record in records}  # files are appended to, and copied
    for record in once.values():
        try:
            rows.append(_row(record))
        except (ValueError, OverflowError):
            damaged += 1
    if damaged and status is LogStatus.COMPLETE:
        status = LogStatus.PARTIAL
    groups: dict[tuple[Op | None, int | None], list[CollectiveRow]] = {}
    for row in rows:
        groups.setdefault((row.op, row.ranks), []).append(row)
    dropped = _Dropped(cut + damaged, len(records) - len(once))
    return tuple(_log(op, ranks, tuple(group), status, dropped) for (op, ranks), group in groups.items())


def _log(
    op: Op | None, ranks: int | None, rows: tuple[CollectiveRow, ...], status: LogStatus, dropped: _Dropped
) -> CollectiveLog:
    log = CollectiveLog(
        tool="rccl-tests",
        op=op,
        op_source=None if op is None else "record",
        ranks=ranks,
        ranks_source=None if ranks is None else "record",
        rows=rows,
        status=status,
    )
    return replace(log, warnings=tuple(_warnings(log, dropped)))


def _warnings(log: CollectiveLog, dropped: _Dropped) -> Iterator[str]:
    if dropped.cut:
        yield f"{dropped.cut} record{'s' * (dropped.cut > 1)} cut, dropped"
    if dropped.repeated:
        yield f"{dropped.repeated} record{'s' * (dropped.repeated > 1)} there twice, kept once"
    if log.status is LogStatus.ABORTED:
        yield "the document has no end: the run was killed"
    if log.ranks is None:
        yield "the number of ranks is not known: none that the records name fits their bandwidths"
    if log.ranks == 1:
        yield "a single rank: nothing crossed a link, so that no row has a bandwidth"
    bad = sum(row.checked is Checked.BAD for row in log.rows)
    unchecked = sum(row.checked is Checked.UNCHECKED for row in log.rows)
    if bad:
        yield f"wrong results: {bad} of {len(log.rows)} rows"
    if unchecked:
        yield f"{unchecked} of {len(log.rows)} rows were not checked"


def _row(record: Record) -> CollectiveRow:
    op = op_of(record.get("name", record.get("collective", "")))
    size, time = int(record["size"]), float(record["time"])
    algbw, busbw = _rate(record["algbw"]), _rate(record["busbw"])
    ranks = _ranks(record, op, algbw, busbw)
    text = record.get("wrong", record.get("#wrong", "N/A"))
    wrong = int(text) if text.isdigit() else None
    no_bandwidth = ranks == 1 or not size
    return CollectiveRow(
        op=op,
        format=format_of_tests(record["type"]),
        size_bytes=size,
        count=None,
        redop=record.get("redop"),
        root=None,
        in_place=record["inplace"] == "1",
        ranks=ranks,
        time_s=time * US,
        algbw_bytes_s=None if no_bandwidth else algbw,
        busbw_bytes_s=None if no_bandwidth else busbw,
        wrong=wrong,
        checked=Checked.UNCHECKED if wrong is None else Checked.BAD if wrong else Checked.GOOD,
        extra=(("numCycle", int(record["numcycle"])),) if record.get("numcycle", "0") != "0" else (),
    )


def _rate(text: str) -> float | None:
    """Bytes per second; ``None`` for what is not finite."""
    value = float(text)
    return value * GB if math.isfinite(value) else None


def _ranks(record: Record, op: Op | None, algbw: float | None, busbw: float | None) -> int | None:
    """What the tool calls a rank is a process: with several GPUs each, the bandwidths say how many ranks the library had."""
    processes = int(record.get("ranks", record.get("gpus", "0")))
    candidates = dict.fromkeys((processes, processes * int(record.get("gpusperrank", "1"))))
    if len(candidates) == 1 or op is None or not algbw or busbw is None:
        return processes or None
    fitting = [each for each in candidates if each > 1 and abs(busbw / algbw / busbw_factor(op, each) - 1) < 0.01]
    return fitting[0] if len(fitting) == 1 else None
