"""Whether a store is whole: the file, its references, its blobs, and what one table repeats of another."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from operator import gt
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Integer,
    LargeBinary,
    Table,
    Text,
    cast,
    func,
    or_,
    select,
    type_coerce,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import NullType, TypeEngine

from suite.hardware import cpu
from suite.measurement import TIMED, SampleSet
from suite.outcome import Evidence, Outcome
from suite.store import schema, sqlite, tables
from suite.store.catalogue import to_device_row, to_facts
from suite.store.coherent import interval_flaws, sample_flaws
from suite.store.columns import Count, Finite, SafeText, UtcTime, load_json, refuse_non_number
from suite.store.compiled import to_compiled
from suite.store.counts import miscounted
from suite.store.damage import NO_TEXT, UNREADABLE, Damaged, converting, damaged, one_line, scalars
from suite.store.integrity import flaws
from suite.store.measured import read_columns, rebuild_samples
from suite.store.plausible import PAIRS, RANGES, refuse_implausible, refuse_rates_of_nothing
from suite.store.problem import (
    VERSION_TABLE,
    DerivedProblem,
    FileProblem,
    MissingReadings,
    Problem,
    StrangeObject,
    VersionProblem,
)
from suite.store.runs import STATUSES, describe
from suite.store.selftests import to_selftest
from suite.store.strange import strange_objects
from suite.store.summarised import summary_flaws
from suite.store.tables import Base
from suite.store.telemetry import missing, unpack_plausible

CHUNK = 500  # rows read at once
OF_RESULT = re.compile(r"(result|sample_blob|telemetry_blob|summary) (?P<id>\d+)")

Reading = Callable[[Connection, Sequence[int]], None]

_DEVICE = tables.table_of(tables.Device)
_ENVIRONMENT = tables.table_of(tables.Environment)
_RUN = tables.table_of(tables.Run)
_WORKLOAD = tables.table_of(tables.Workload)
_CASE = tables.table_of(tables.Case)
_RESULT = tables.table_of(tables.Result)
_SAMPLES = tables.table_of(tables.SampleBlob)
_SELFTEST = tables.table_of(tables.Selftest)
_COMPILED = tables.table_of(tables.Compiled)
_SUMMARY = tables.table_of(tables.Summary)
_TELEMETRY = tables.table_of(tables.TelemetryBlob)


def problems(path: Path) -> Iterator[Problem]:
    """Everything that is wrong with a store, as far as it can be read, each once."""
    broken = [FileProblem(*flaw) for flaw in flaws(path)]
    yield from broken
    yield from dict.fromkeys(each for each in _content_problems(path) if not (broken and isinstance(each, FileProblem)))


def refuse_damaged(path: Path, but: tuple[type[Problem], ...] = (MissingReadings, StrangeObject)) -> None:
    """``Damaged`` for the first thing that is wrong with a store and is not of a kind in ``but``."""
    for problem in problems(path):
        if not isinstance(problem, but):
            raise Damaged(problem.where, problem.what)


class Damage(NamedTuple):
    """What is wrong with results, by their ids: the first thing in what was measured, and those whose summary alone is."""

    results: dict[int, Problem]
    underived: frozenset[int]


def damage(path: Path) -> Damage:
    """What is wrong with single results; ``Damaged`` for what is not of one result alone.

    Readings that were missing are not among it, nor is what lies beside the tables.
    """
    found: dict[int, Problem] = {}
    underived = set()
    for problem in problems(path):
        if isinstance(problem, (MissingReadings, StrangeObject)):
            continue
        row = OF_RESULT.fullmatch(problem.where)
        if isinstance(problem, DerivedProblem):
            underived |= {int(row["id"])} if row else set()
        elif row is None:
            raise Damaged(problem.where, problem.what)
        else:
            found.setdefault(int(row["id"]), Problem(f"result {row['id']}", problem.what))
    return Damage(found, frozenset(underived))


def _content_problems(path: Path) -> Iterator[Problem]:
    engine = sqlite.checking_engine(path)
    looks = (
        _versions,
        _lost_references,
        _doubles,
        _misfits,
        _unreadable_rows,
        _broken_samples,
        _broken_telemetry,
        _contradictions,
    )
    of_results = (_crossed_intervals, _misplaced_results, _odd_work, _lost_telemetry, _underived)
    for look in (*looks, *of_results, _odd_runs, _bare_runs, _lost_specs, _odd_selftests, _strange_objects):
        try:
            with sqlite.reading(engine) as connection:
                yield from look(connection)
        except DBAPIError as error:
            yield FileProblem("file", sqlite.flaw(error.orig))
        except UNREADABLE as error:  # what keeps one look from going on does not keep the next from beginning
            found = damaged("store", error)
            yield Problem(found.where, found.what)


def _versions(connection: Connection) -> Iterator[Problem]:
    found = sorted(map(str, connection.scalars(select(schema.VERSION.c.version_num))))
    if len(found) > 1:
        yield VersionProblem(
            VERSION_TABLE, f"{len(found)} rows ({one_line(', '.join(found))}), where one says what the schema is"
        )


def _lost_references(connection: Connection) -> Iterator[Problem]:
    for table in Base.metadata.sorted_tables:
        for key in table.foreign_keys:
            parent = key.column.table.alias()
            there = select(parent.c[key.column.name]).where(parent.c[key.column.name] == key.parent).exists()
            lost = connection.scalar(select(func.count()).select_from(table).where(key.parent.is_not(None), ~there))
            if lost:
                yield Problem(table.name, f"{lost} rows refer to a {key.column.table.name} that is not there")


def _doubles(connection: Connection) -> Iterator[Problem]:
    same = (_RESULT.c.run_id, _RESULT.c.device_slot, _RESULT.c.case_id, _RESULT.c.attempt)
    for row in connection.execute(select(*same, func.count().label("times")).group_by(*same).having(func.count() > 1)):
        yield Problem("result", f"attempt {row.attempt} at case {row.case_id} of run {row.run_id} is there {row.times} times")


def _misfits(connection: Connection) -> Iterator[Problem]:
    """Values that no writer puts into their column; SQLite takes anything anywhere."""
    for table in Base.metadata.sorted_tables:
        columns = [(column.name, bool(column.nullable), _reading_of(column)) for column in table.columns]
        raw = select(*(type_coerce(column, NullType()).label(column.name) for column in table.columns))
        for row in connection.execute(raw):
            for value, (name, nullable, read) in zip(row, columns, strict=True):
                wrong = _why_not(value, nullable, read)
                if wrong:
                    kind = DerivedProblem if table is _SUMMARY else Problem
                    yield kind(f"{table.name} {row[0]}", f"{name}: {wrong}")


def _why_not(value: Any, nullable: bool, read: Callable[[Any], object]) -> str:
    if value is None:
        return "" if nullable else "it is missing"
    if isinstance(value, sqlite.NotText):
        return NO_TEXT
    try:
        read(value)
    except UNREADABLE as error:
        return damaged("", error).what
    return ""


def _reading_of(column: Column[Any]) -> Callable[[Any], object]:
    """What raises on a value that the column cannot hold, or that no measurement gives."""
    read = _reading(column.type)
    if column.name not in RANGES or column.table not in (_RESULT, _SUMMARY):
        return read

    def read_number(value: Any) -> None:
        read(value)
        refuse_implausible(column.name, int(value) if isinstance(column.type, Count) else value)

    return read_number


def _reading(kind: TypeEngine[Any]) -> Callable[[Any], object]:
    """What raises on a value that the column cannot hold."""
    for known, read in _READING:
        if isinstance(kind, known):
            return read
    raise AssertionError(f"no column of a store is a {kind!r}")


def _read_as(kind: type, *also: type) -> Callable[[Any], object]:
    def read(value: Any) -> None:
        if not isinstance(value, (kind, *also)):
            raise ValueError(f"{str(value)[:40]!r} is not of type {kind.__name__}")

    return read


_READING: tuple[tuple[type[TypeEngine[Any]], Callable[[Any], object]], ...] = (
    (JSON, load_json),
    (UtcTime, datetime.fromisoformat),
    (Finite, refuse_non_number),
    (Count, int),
    (Boolean, (0, 1).index),
    (Integer, _read_as(int)),
    (LargeBinary, _read_as(bytes)),
    (SafeText, _read_as(str)),
)


def _unreadable_rows(connection: Connection) -> Iterator[Problem]:
    """Rows whose values may fit their columns, but do not say what readers need."""
    for table, read in _ROWS:
        ids = connection.scalars(select(table.c.id).order_by(table.c.id)).all()
        for start in range(0, len(ids), CHUNK):
            yield from _unreadable(connection, ids[start : start + CHUNK], table.name, read)


def _unreadable(connection: Connection, ids: Sequence[int], kind: str, read: Reading) -> Iterator[Problem]:
    """Read many rows at once, and only where that fails half of them after the other, down to the ones at fault."""
    try:
        with converting(f"{kind} {ids[0]}"):
            read(connection, ids)
    except Damaged as found:
        if len(ids) == 1:
            yield Problem(found.where, found.what)
            return
        middle = len(ids) // 2
        yield from _unreadable(connection, ids[:middle], kind, read)
        yield from _unreadable(connection, ids[middle:], kind, read)


def _read_runs(connection: Connection, ids: Sequence[int]) -> None:
    for row in connection.execute(select(_RUN).where(_RUN.c.id.in_(ids))):
        describe(row, 0)


def _read_devices(connection: Connection, ids: Sequence[int]) -> None:
    for row in connection.execute(select(_DEVICE).where(_DEVICE.c.id.in_(ids))):
        to_device_row(row)


def _read_environments(connection: Connection, ids: Sequence[int]) -> None:
    for facts in connection.scalars(select(_ENVIRONMENT.c.facts).where(_ENVIRONMENT.c.id.in_(ids))):
        to_facts(facts)


def _read_workloads(connection: Connection, ids: Sequence[int]) -> None:
    for row in connection.execute(select(_WORKLOAD.c.params, _WORKLOAD.c.semantics).where(_WORKLOAD.c.id.in_(ids))):
        scalars(row.params, "params")
        scalars(row.semantics, "semantics")


def _read_cases(connection: Connection, ids: Sequence[int]) -> None:
    for switches in connection.scalars(select(_CASE.c.switches).where(_CASE.c.id.in_(ids))):
        scalars(switches, "switches")


def _read_selftests(connection: Connection, ids: Sequence[int]) -> None:
    for row in connection.execute(select(_SELFTEST).where(_SELFTEST.c.id.in_(ids))):
        to_selftest(row, {})


def _read_compiled(connection: Connection, ids: Sequence[int]) -> None:
    for row in connection.execute(select(_COMPILED).where(_COMPILED.c.id.in_(ids))):
        to_compiled(row)


def _read_results(connection: Connection, ids: Sequence[int]) -> None:
    """The results themselves; their blobs are looked at one by one elsewhere."""
    for row in connection.execute(select(_RESULT).where(_RESULT.c.id.in_(ids))).mappings():
        if row["outcome"] in list(Outcome):  # another is reported as such
            read_columns(row)


_ROWS: tuple[tuple[Table, Reading], ...] = (
    (_RUN, _read_runs),
    (_DEVICE, _read_devices),
    (_ENVIRONMENT, _read_environments),
    (_WORKLOAD, _read_workloads),
    (_CASE, _read_cases),
    (_RESULT, _read_results),
    (_SELFTEST, _read_selftests),
    (_COMPILED, _read_compiled),
)


def _broken_samples(connection: Connection) -> Iterator[Problem]:
    columns = [type_coerce(each, NullType()).label(each.name) for each in _SAMPLES.columns if each.name != "details"]
    ends = [type_coerce(_RESULT.c[name], NullType()).label(name) for pair in PAIRS for name in pair]
    for row in connection.execute(select(*columns, *ends).outerjoin(_RESULT, _RESULT.c.id == _SAMPLES.c.result_id)):
        try:
            lists = {name: load_json(getattr(row, name)) for name in ("boundaries", "spans")}
            samples = rebuild_samples({**row._mapping, "details": {}, **lists}, "")
        except UNREADABLE as error:
            yield Problem(f"result {row.result_id}", f"its samples cannot be decoded: {error}")
            continue
        yield from (Problem(f"result {row.result_id}", flaw) for flaw in (*sample_flaws(samples), *_far_ends(samples, row)))


def _far_ends(samples: SampleSet, row: Any) -> Iterator[str]:
    for (first, last), name in zip(PAIRS, ("seconds", "cycles"), strict=True):
        low, high = getattr(row, first), getattr(row, last)
        if isinstance(low, int | float) and isinstance(high, int | float):  # what else is there is found by its column
            yield from interval_flaws(samples, name, (low, high))


def _broken_telemetry(connection: Connection) -> Iterator[Problem]:
    for row in connection.execute(select(_TELEMETRY.c.result_id, type_coerce(_TELEMETRY.c.channels, NullType()))):
        where = f"result {row.result_id}"
        try:
            channels = unpack_plausible(row[1])
        except UNREADABLE as error:
            yield Problem(where, f"its telemetry cannot be decoded: {one_line(str(error))}")
            continue
        for name, count in missing(channels).items():
            yield MissingReadings(where, f"{count} readings of its {one_line(name)} are no numbers, and count as missing")


def _lost_telemetry(connection: Connection) -> Iterator[Problem]:
    """Timed results of a run that read telemetry always have some, if only why there is none."""
    bare = select(_RESULT.c.id).where(
        _RESULT.c.run_id.in_(_reading_runs(connection)),
        _RESULT.c.outcome.in_([each.value for each in TIMED]),
        _RESULT.c.evidence.in_([Evidence.MEASURED.value, Evidence.SIMULATED.value]),
        ~select(_TELEMETRY.c.result_id).where(_TELEMETRY.c.result_id == _RESULT.c.id).exists(),
    )
    for result_id in connection.scalars(bare):
        yield Problem(f"result {result_id}", "its telemetry is missing, which its run read")


def _reading_runs(connection: Connection) -> list[int]:
    """Runs that were told to read telemetry; what is wrong with a configuration is found where runs are read."""
    found = []
    for row in connection.execute(select(_RUN.c.id, cast(_RUN.c.config, Text).label("config"))):
        with suppress(*UNREADABLE):
            if load_json(row.config)["measure"]["telemetry"] is True:
                found.append(row.id)
    return found


def _odd_work(connection: Connection) -> Iterator[Problem]:
    for found in miscounted(connection):
        what = f"its {found.name} is {str(found.stored)[:40]}, and its job counts {found.counted} for its workload"
        yield Problem(f"result {found.result_id}", what)
    raw = [type_coerce(column, NullType()).label(column.name) for column in (_RESULT.c.flops, _RESULT.c.compulsory_bytes)]
    rates = [type_coerce(column, NullType()).label(column.name) for column in (_SUMMARY.c.flop_s, _SUMMARY.c.bytes_s)]
    for row in connection.execute(select(_RESULT.c.id, *raw, *rates).join(_SUMMARY, _SUMMARY.c.result_id == _RESULT.c.id)):
        try:
            refuse_rates_of_nothing(
                {**row._mapping, **{name: int(getattr(row, name)) for name in ("flops", "compulsory_bytes")}}
            )
        except UNREADABLE as error:
            yield DerivedProblem(f"summary {row.id}", one_line(str(error)))


def _contradictions(connection: Connection) -> Iterator[Problem]:
    untimed = select(_RESULT.c.id).where(
        _RESULT.c.outcome.in_([each.value for each in TIMED]),
        ~select(_SAMPLES.c.result_id).where(_SAMPLES.c.result_id == _RESULT.c.id).exists(),
    )
    for result_id in connection.scalars(untimed):
        yield Problem(f"result {result_id}", "it was timed, but has no samples")
    unknown = select(_RESULT.c.id, _RESULT.c.outcome).where(_RESULT.c.outcome.not_in([each.value for each in Outcome]))
    for row in connection.execute(unknown):
        yield Problem(f"result {row.id}", f"'{row.outcome}' is no outcome")
    for result_id in connection.scalars(_different_summaries()):
        yield DerivedProblem(f"result {result_id}", "its summary repeats another device, evidence, pipe, load or outcome")


def _crossed_intervals(connection: Connection) -> Iterator[Problem]:
    for table, kind in ((_RESULT, Problem), (_SUMMARY, DerivedProblem)):
        key = next(iter(table.primary_key))
        for low, high in PAIRS:
            ends = (type_coerce(table.c[name], NullType()) for name in (low, high))
            for row_id in connection.scalars(select(key).where(gt(*ends))):
                yield kind(f"{table.name} {row_id}", f"its {low} is above its {high}")


def _misplaced_results(connection: Connection) -> Iterator[Problem]:
    """Results whose device or environment is another run's, or whose device is in another slot."""
    device = select(_DEVICE.c.id).where(
        _DEVICE.c.id == _RESULT.c.device_id, _DEVICE.c.run_id == _RESULT.c.run_id, _DEVICE.c.slot == _RESULT.c.device_slot
    )
    environment = select(_ENVIRONMENT.c.id).where(
        _ENVIRONMENT.c.id == _RESULT.c.environment_id, _ENVIRONMENT.c.run_id == _RESULT.c.run_id
    )
    for result_id in connection.scalars(select(_RESULT.c.id).where(~device.exists())):
        yield Problem(f"result {result_id}", "its device is not in its slot of its run")
    for result_id in connection.scalars(select(_RESULT.c.id).where(~environment.exists())):
        yield Problem(f"result {result_id}", "its environment is not of its run")


def _bare_runs(connection: Connection) -> Iterator[Problem]:
    for table in (_DEVICE, _ENVIRONMENT):
        bare = select(_RUN.c.id).where(~select(table.c.id).where(table.c.run_id == _RUN.c.id).exists())
        for run_id in connection.scalars(bare):
            yield Problem(f"run {run_id}", f"it has no {table.name}")


def _odd_runs(connection: Connection) -> Iterator[Problem]:
    for row in connection.execute(select(_RUN.c.id, _RUN.c.status)):
        if row.status not in STATUSES:
            yield Problem(f"run {row.id}", f"its status '{one_line(str(row.status))}' is none of {', '.join(STATUSES)}")


def _lost_specs(connection: Connection) -> Iterator[Problem]:
    """What is derived of a CPU stands nowhere else; a sheet of the table can be looked up again."""
    for row in connection.execute(select(_DEVICE.c.id, _DEVICE.c.hardware, _DEVICE.c.spec)):
        if row.hardware == cpu.ID and row.spec is None:
            yield Problem(f"device {row.id}", "the spec that was derived of it is missing")


def _underived(connection: Connection) -> Iterator[Problem]:
    """Summaries of these formulas that say what these do not give; those of others are not held against them."""
    for result_id, what in summary_flaws(connection):
        yield DerivedProblem(f"summary {result_id}", what)


def _strange_objects(connection: Connection) -> Iterator[Problem]:
    for each in strange_objects(connection):
        kind = "a virtual table" if each.kind == "table" else f"a {each.kind}"
        yield StrangeObject(f"{each.kind} {one_line(each.name)}", f"{kind}, which no store of roofbench has")


def _odd_selftests(connection: Connection) -> Iterator[Problem]:
    names = {row.uid: row.name for row in connection.execute(select(_RUN.c.uid, _RUN.c.name))}
    for row in connection.execute(select(_SELFTEST)):
        try:
            found = to_selftest(row, names)
        except Damaged:
            continue  # found where rows are read
        if row.runs and not found.runs:
            yield Problem(f"selftest {row.id}", "none of the runs that it rests on is there")
        if row.status != found.status.value:
            yield Problem(f"selftest {row.id}", f"its status '{row.status}' is not that of its findings")


def _different_summaries() -> Any:
    return (
        select(_RESULT.c.id)
        .join(_SUMMARY, _SUMMARY.c.result_id == _RESULT.c.id)
        .join(_CASE, _CASE.c.id == _RESULT.c.case_id)
        .where(
            or_(
                _SUMMARY.c.device_id != _RESULT.c.device_id,
                _SUMMARY.c.evidence != _RESULT.c.evidence,
                _SUMMARY.c.pipe.is_distinct_from(_RESULT.c.pipe),
                _SUMMARY.c.load != _CASE.c.load,
                _SUMMARY.c.verified != (_RESULT.c.outcome == Outcome.OK.value),
            )
        )
    )
