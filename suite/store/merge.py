"""Bringing the runs of one store into another, as often as one likes: what is there already stays as it is."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Table, insert, select, type_coerce, update
from sqlalchemy.types import NullType

from suite.errors import StoreUnusable, UsageError
from suite.store import compiled, lease, schema, selftests, sqlite, tables
from suite.store.check import refuse_damaged
from suite.store.damage import converting
from suite.store.files import locate, shown
from suite.store.prepared import new_id, prepared_insert
from suite.store.runs import new_name
from suite.store.session import Session
from suite.store.writer import Store

CHUNK = 500  # results of one commit: the write lock is held for a fraction of a second, so that a live run goes on

_RUN = tables.table_of(tables.Run)
_RESULT = tables.table_of(tables.Result)
_CASE = tables.table_of(tables.Case)
_WORKLOAD = tables.table_of(tables.Workload)
_OF_RUN = (tables.table_of(tables.Environment), tables.table_of(tables.Device))
_OF_RESULT = tuple(tables.table_of(model) for model in (tables.SampleBlob, tables.TelemetryBlob, tables.Summary))
_LOG = tables.table_of(tables.Log)
_ARTIFACT = tables.table_of(tables.Artifact)
_SELFTEST = tables.table_of(tables.Selftest)
_COMPILED = tables.table_of(tables.Compiled)
COMPLETE = "complete"
_KEYS = ("id", "run_id", "environment_id", "device_id", "case_id", "result_id")  # which no two stores have in common
_MEASURED = (_RESULT, *_OF_RESULT[:2])  # not what is derived of it, which may be of other formulas
_ADDED = (_RUN, *_OF_RUN, _LOG, _ARTIFACT, _WORKLOAD, _CASE, _RESULT, _SELFTEST, _COMPILED)
_ADD = {table.name: prepared_insert(table) for table in _ADDED}


class Merged(NamedTuple):
    """What a merge did.  ``renamed`` maps a run's name in the source to its name here, where the name was taken."""

    runs_added: int
    results_added: int
    results_present: int
    live: tuple[str, ...]  # runs left out because a process is writing them here
    renamed: Mapping[str, str]
    selftests_added: int = 0
    orphans: tuple[Path, ...] = ()  # what was moved out of the way of a new target
    compiled_added: int = 0
    results_differing: int = 0  # of those present: other figures of the same attempt, which stay as they are


def refuse_source(source: str, target: str) -> None:
    """``StoreUnusable`` for what cannot be merged, ``UsageError`` for a store into itself; looks only, at all of it."""
    path = locate(source)
    schema.refuse_unreadable(path)
    if locate(target) == path:
        raise UsageError(f"store {shown(path)} cannot be merged into itself: name another target")
    with sqlite.translated(path, StoreUnusable):
        refuse_damaged(path)  # half of it must not get into the target


def merge(source: str, target: str, *, is_checked: bool = False) -> Merged:
    """Copy what ``target`` lacks of ``source``: runs, results of runs, selftests, and cells that were compiled.

    The source is checked first (see ``refuse_source``) unless it was, and only read.  Interrupted, it may be repeated.
    ``StoreUnusable`` and ``StoreWriteFailed`` as for ``Store.open`` and recording.
    """
    if not is_checked:
        refuse_source(source, target)
    path = locate(source)
    with (
        Store.open(target) as store,
        sqlite.translated(path, StoreUnusable),
        converting("its rows"),
        sqlite.reading(sqlite.reader_engine(path)) as origin,
    ):
        return _Merge(origin, store.session).run()._replace(orphans=store.migrated.orphans)


class _Merge:
    def __init__(self, origin: Connection, session: Session) -> None:
        self._origin = origin
        self._session = session
        self._cases: dict[int, int] = {}
        self._runs_added = self._results_added = self._results_present = self._results_differing = 0
        self._live: list[str] = []
        self._renamed: dict[str, str] = {}

    def run(self) -> Merged:
        for row in self._origin.execute(select(_RUN).order_by(_RUN.c.id)).all():
            self._copy_run(row)
        counts = (self._runs_added, self._results_added, self._results_present)
        added = (self._copy_selftests(), (), self._copy_compiled())
        return Merged(*counts, tuple(self._live), dict(self._renamed), *added, self._results_differing)

    def _copy_selftests(self) -> int:
        """Add those that are not here yet, after their runs; they name these by what no merge changes."""
        with self._session.transaction() as here:
            rows = self._origin.execute(select(_SELFTEST).order_by(_SELFTEST.c.id)).all()
            new = [row for row in rows if not selftests.known(here, row.digest)]
            for row in new:
                _add(here, _SELFTEST, _content(row))
        return len(new)

    def _copy_compiled(self) -> int:
        """Add the cells that are not here yet; what depends on the same became the same."""
        with self._session.transaction() as here:
            rows = self._origin.execute(select(_COMPILED).order_by(_COMPILED.c.id)).all()
            known = compiled.known(here, [row.key for row in rows])
            new = [row for row in rows if row.key not in known]
            for row in new:
                _add(here, _COMPILED, _content(row))
        return len(new)

    def _copy_run(self, row: Row[Any]) -> None:
        with self._session.transaction() as here:
            known = here.execute(select(_RUN).where(_RUN.c.uid == row.uid)).one_or_none()
            if known is not None and lease.holder(self._session.path, known.name) is not None:
                self._live.append(known.name)
                return
            run_id = self._add_run(here, row) if known is None else int(known.id)
            present = _present(here, run_id)
            owners = self._copy_owned(here, row.id, run_id) if known is None else None
        for chunk in self._missing(row.id, present):
            if owners is None:
                with self._session.transaction() as here:
                    owners = self._copy_owned(here, row.id, run_id)
            self._copy_results(chunk, run_id, owners)
        if known is not None and _has_ended_since(known, row, owners is not None):
            with self._session.transaction() as here:
                self._copy_owned(here, row.id, run_id)
                values = {"status": row.status, "reason": row.reason, "finished_at": row.finished_at}
                here.execute(update(_RUN).where(_RUN.c.id == run_id).values(values))

    def _copy_owned(self, here: Connection, source_run: int, run_id: int) -> dict[str, dict[int, int]]:
        """Bring over what a run has beside its results; of one that has nothing new, nothing: copies may have parted."""
        _copy_missing(self._origin, here, _LOG, ("name", "created_at"), source_run, run_id)
        _copy_missing(self._origin, here, _ARTIFACT, ("name",), source_run, run_id)
        return {table.name: _match_owned(self._origin, here, table, source_run, run_id) for table in _OF_RUN}

    def _add_run(self, here: Connection, row: Row[Any]) -> int:
        name = row.name
        while here.scalar(select(_RUN.c.id).where(_RUN.c.name == name)) is not None:
            name = self._renamed[row.name] = new_name(row.started_at)
        self._runs_added += 1
        return _add(here, _RUN, _content(row) | {"name": name})

    def _missing(self, run_id: int, present: Mapping[tuple[int, str, int], int]) -> Iterator[list[Row[Any]]]:
        """The run's results that are not in the target, by chunks; those that are there are counted, and which differ."""
        last = 0
        statement = select(_RESULT, _CASE.c.key).join_from(_RESULT, _CASE).where(_RESULT.c.run_id == run_id)
        while chunk := self._origin.execute(statement.where(_RESULT.c.id > last).order_by(_RESULT.c.id).limit(CHUNK)).all():
            last = chunk[-1].id
            new = [row for row in chunk if (row.device_slot, row.key, row.attempt) not in present]
            self._results_present += len(chunk) - len(new)
            same = {row.id: at for row in chunk if (at := present.get((row.device_slot, row.key, row.attempt))) is not None}
            self._results_differing += self._differing(same)
            if new:
                yield new

    def _differing(self, same: Mapping[int, int]) -> int:
        """How many results have other figures here; ``same`` maps ids in the source to those here."""
        if not same:
            return 0
        theirs = _measured(self._origin, list(same))
        with self._session.transaction() as here:
            ours = _measured(here, list(same.values()))
        return sum(theirs[one] != ours[other] for one, other in same.items())

    def _copy_results(self, rows: Sequence[Row[Any]], run_id: int, owners: Mapping[str, Mapping[int, int]]) -> None:
        cases: dict[int, int] = {}
        with self._session.transaction() as here:
            values = []
            for row in rows:
                content = _content(row)
                content.pop("key")
                case_id = self._cases.get(row.case_id) or cases.get(row.case_id)
                if case_id is None:
                    case_id = cases[row.case_id] = _match_case(self._origin, here, row.case_id)
                device_id, environment_id = owners["device"][row.device_id], owners["environment"][row.environment_id]
                place = {"run_id": run_id, "case_id": case_id, "device_id": device_id, "environment_id": environment_id}
                values.append(content | place)
            new_ids = {row.id: _add(here, _RESULT, columns) for row, columns in zip(rows, values, strict=True)}
            for table in _OF_RESULT:
                self._copy_parts(here, table, new_ids, owners["device"])
        self._cases |= cases
        self._results_added += len(rows)

    def _copy_parts(self, here: Connection, table: Table, new_ids: Mapping[int, int], devices: Mapping[int, int]) -> None:
        rows = self._origin.execute(select(table).where(table.c.result_id.in_(new_ids))).mappings()
        values = [dict(row) | {"result_id": new_ids[row["result_id"]]} for row in rows]
        for each in values:
            if "device_id" in each:
                each["device_id"] = devices[each["device_id"]]
        if values:
            here.execute(insert(table), values)


def _has_ended_since(known: Row[Any], row: Row[Any], went_on: bool) -> bool:
    """Whether the source tells how the run ended after what is known here: it went on there, or came to its end.

    What is complete here has ended for good: the copy was measured again.
    """
    if known.status == COMPLETE or row.finished_at is None:
        return False
    if known.finished_at is None:
        return True
    return bool((went_on or row.status == COMPLETE) and known.finished_at < row.finished_at)


def _match_owned(origin: Connection, here: Connection, table: Table, source_run: int, run_id: int) -> dict[int, int]:
    """Find or add the run's devices or environments; maps their ids in the source to those here."""
    names = [name for name in ("slot", "digest") if name in table.c]
    known = {tuple(row[name] for name in names): row["id"] for row in _of_run(here, table, run_id)}
    matched = {}
    for row in _of_run(origin, table, source_run):
        same = tuple(row[name] for name in names)
        if same not in known:
            content = {name: value for name, value in row.items() if name != "id"}
            known[same] = _add(here, table, content | {"run_id": run_id})
        matched[row["id"]] = known[same]
    return matched


def _copy_missing(
    origin: Connection, here: Connection, table: Table, names: Sequence[str], source_run: int, run_id: int
) -> None:
    """Copy the run's logs or artifacts that are not here yet."""
    columns = [table.c[name] for name in names]
    known = {tuple(row) for row in here.execute(select(*columns).where(table.c.run_id == run_id))}
    for row in _of_run(origin, table, source_run):
        if tuple(row[name] for name in names) not in known:
            content = {name: value for name, value in row.items() if name != "id"}
            _add(here, table, content | {"run_id": run_id})


def _of_run(connection: Connection, table: Table, run_id: int) -> Sequence[Mapping[Any, Any]]:
    return connection.execute(select(table).where(table.c.run_id == run_id).order_by(table.c.id)).mappings().all()


def _present(here: Connection, run_id: int) -> dict[tuple[int, str, int], int]:
    """The ids of the run's results here, by slot, case and attempt."""
    statement = select(_RESULT.c.device_slot, _CASE.c.key, _RESULT.c.attempt, _RESULT.c.id).join_from(_RESULT, _CASE)
    rows = here.execute(statement.where(_RESULT.c.run_id == run_id))
    return {(slot, key, attempt): result_id for slot, key, attempt, result_id in rows}


def _measured(connection: Connection, ids: Sequence[int]) -> dict[int, list[tuple[Any, ...]]]:
    """What was measured of results, as the file has it, by their ids."""
    found: dict[int, list[tuple[Any, ...]]] = {result_id: [] for result_id in ids}
    for table in _MEASURED:
        key = table.c.id if table is _RESULT else table.c.result_id
        columns = (type_coerce(column, NullType()).label(column.name) for column in table.columns if column.name not in _KEYS)
        for result_id, *values in connection.execute(select(key, *columns).where(key.in_(ids))):
            found[result_id].append((table.name, *values))
    return found


def _match_case(origin: Connection, here: Connection, case_id: int) -> int:
    row = origin.execute(select(_CASE).where(_CASE.c.id == case_id)).one()
    found = here.scalar(select(_CASE.c.id).where(_CASE.c.key == row.key))
    if found is not None:
        return int(found)
    workload = origin.execute(select(_WORKLOAD).where(_WORKLOAD.c.id == row.workload_id)).one()
    workload_id = here.scalar(select(_WORKLOAD.c.id).where(_WORKLOAD.c.key == workload.key))
    if workload_id is None:
        workload_id = _add(here, _WORKLOAD, _content(workload))
    return _add(here, _CASE, _content(row) | {"workload_id": workload_id})


def _add(here: Connection, table: Table, columns: Mapping[str, Any]) -> int:
    return new_id(_ADD[table.name].run(here, columns))


def _content(row: Row[Any]) -> dict[str, Any]:
    return {name: value for name, value in row._mapping.items() if name != "id"}
