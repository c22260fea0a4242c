"""Reading a store: what the commands, the dashboard and the report see of it."""

import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import ColumnElement, Connection, Engine, Select, func, select

from suite.backend import Fact
from suite.errors import StoreUnusable, UsageError
from suite.measurement import Measurement
from suite.outcome import Evidence
from suite.rows import BaseFigures, BaseKey, Calibration, CalibrationHistory, DeviceRow, Pause, ResultDetail, ResultRow, RunInfo
from suite.selftest.record import Repeatability, Selftest
from suite.store import compiled, schema, selftests, sqlite, tables
from suite.store.catalogue import to_device_row, to_facts
from suite.store.damage import Damaged, converting
from suite.store.detail import find_measurement, find_result, load_kept
from suite.store.files import locate, refuse_irregular, shown
from suite.store.listing import fetch, is_latest, rows_statement, to_listed_row, to_row
from suite.store.pauses import pause_between
from suite.store.roofs import RoofKey, Roofs, best_bandwidth, best_rates, calibrated, contended, history, latest
from suite.store.runs import find_run, finished_counts, to_info
from suite.targets.record import Compiled

_ARTIFACT = tables.table_of(tables.Artifact)
_ENVIRONMENT = tables.table_of(tables.Environment)
_DEVICE = tables.table_of(tables.Device)
_LOG = tables.table_of(tables.Log)
_RUN = tables.table_of(tables.Run)
_RESULT = tables.table_of(tables.Result)

Wanted = str | Collection[str] | None


class Reader:
    """A store open for reading.  Each method asks its questions of one state of the store and then lets go of it.

    The file is never written, and is not kept open between calls; several threads may share a reader.
    """

    def __init__(self, path: Path, engine: Engine) -> None:
        self.path = path
        self._engine = engine

    @classmethod
    def open(cls, url: str, *, busy_timeout_s: float = sqlite.BUSY_TIMEOUT_S) -> Self:
        """Open the store at a path or an ``sqlite:///`` URL.

        ``StoreUnusable`` when there is none, when it is no store, when its schema is not this version's, or, from any
        method, when another process keeps it locked for ``busy_timeout_s`` seconds.
        """
        path = locate(url)
        refuse_irregular(path)
        schema.refuse_unreadable(path)
        return cls(path, sqlite.reader_engine(path, busy_timeout_s))

    def runs(self) -> list[RunInfo]:
        """Every run, the latest first."""
        with self._reading("its runs") as connection:
            counts = dict(_pairs(connection, finished_counts()))
            rows = connection.execute(select(_RUN).order_by(_RUN.c.started_at.desc(), _RUN.c.id.desc()))
            return [to_info(self.path, row, counts.get(row.id, 0)) for row in rows]

    def resolve(self, run: str | None = None) -> RunInfo:
        """The run that an id, the beginning of one, ``latest`` or ``None`` (the latest) means; ``UsageError`` for none."""
        with self._reading("its runs") as connection:
            row = find_run(connection, self.path, run)
            count = finished_counts(select(_RUN.c.id).where(_RUN.c.id == row.id))
            return to_info(self.path, row, dict(_pairs(connection, count)).get(row.id, 0))

    def pause(self, run: str | None = None) -> Pause | None:
        """The time in which none of a run's cases was under way between its first and its last; ``None`` without such."""
        with self._reading("when its cases ran") as connection:
            of_run = _RESULT.c.run_id == find_run(connection, self.path, run).id
            chosen = select(_RESULT.c.started_at, _RESULT.c.finished_at).where(of_run).order_by(_RESULT.c.started_at)
            return pause_between((row.started_at, row.finished_at) for row in connection.execute(chosen))

    def results(
        self,
        run: Wanted = None,
        *,
        job: Wanted = None,
        format: Wanted = None,
        device_uid: Wanted = None,
        backend: Wanted = None,
        implementation: Wanted = None,
        evidence: Wanted = None,
        outcome: Wanted = None,
        workload_key: Wanted = None,
        case_key: Wanted = None,
        newest_first: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[ResultRow]:
        """Result rows, of each case of a run the latest attempt only, in the order they were stored.

        ``run`` is an id, the beginning of one, several of them, or ``None`` for every run; each filter is one value, a
        collection of which any will do, or ``None``.  ``fractions.empirical`` is against what the store holds now.  A row
        whose numbers are damaged is an ``error`` without them, and its reason says so.
        """
        filters = {
            tables.Workload.job: job,
            tables.Workload.format: format,
            tables.Device.uid: device_uid,
            tables.Case.backend: backend,
            tables.Case.implementation: implementation,
            tables.Result.evidence: evidence,
            tables.Result.outcome: outcome,
        }
        order = tables.Result.id.desc() if newest_first else tables.Result.id
        with self._reading("its results") as connection:
            conditions = [*self._of_runs(connection, run), *_of_cases(workload_key, case_key), *_conditions(filters)]
            statement = rows_statement(*conditions).order_by(order).limit(limit).offset(offset or None)
            return _rows(connection, statement)

    def detail(self, result: int | tuple[str | None, str]) -> ResultDetail:
        """Everything kept of one result, given by its id or as (run, beginning of the case key).

        A case measured on several slots of the run is named ``key@slot``.  ``UsageError`` when none or several fit.  Readings
        of telemetry that were missing are NaN.
        """
        with self._reading("its results") as connection:
            result_id = result if isinstance(result, int) else self._find(connection, *result)
            found = next(fetch(connection, rows_statement(tables.Result.id == result_id)), None)
            if found is None:
                raise UsageError(f"no result {result_id} in store {shown(self.path)}; `roofbench show` lists them")
            return ResultDetail(to_row(found, Roofs(connection).fraction), *load_kept(connection, result_id))

    def measurement(self, result_id: int) -> Measurement:
        """The measurement of one result, given by its id: what ``detail`` has of it, but for readings that were missing."""
        with self._reading("its results") as connection:
            return find_measurement(connection, result_id)

    def devices(self, run: str | None = None) -> list[DeviceRow]:
        """The device slots of a run in their order; a slot that went on on another chip has one row for each."""
        with self._reading("its devices") as connection:
            mine = _DEVICE.c.run_id == find_run(connection, self.path, run).id
            rows = connection.execute(select(_DEVICE).where(mine).order_by(_DEVICE.c.slot, _DEVICE.c.id))
            devices = [to_device_row(row) for row in rows]
            if not devices:
                raise Damaged("its devices", "the run has none")
            return devices

    def environment(self, run: str | None = None) -> dict[str, dict[str, Fact]]:
        """The system that a run was last on, by section and name."""
        with self._reading("its environment") as connection:
            mine = _ENVIRONMENT.c.run_id == find_run(connection, self.path, run).id
            statement = select(_ENVIRONMENT.c.facts).where(mine).order_by(_ENVIRONMENT.c.id.desc()).limit(1)
            return to_facts(connection.scalars(statement).one())

    def counts(self, run: str | None = None) -> dict[str, int]:
        """How many cases of a run ended how, by outcome."""
        result = tables.Result
        with self._reading("its outcomes") as connection:
            mine = result.run_id == find_run(connection, self.path, run).id
            statement = select(result.outcome, func.count()).where(mine, is_latest()).group_by(result.outcome)
            return dict(_pairs(connection, statement))

    def logs(self, run: str | None = None) -> dict[str, str]:
        """The logs of a run by name."""
        with self._reading("its logs") as connection:
            mine = _LOG.c.run_id == find_run(connection, self.path, run).id
            logs: dict[str, str] = {}
            for name, text in _pairs(connection, select(_LOG.c.name, _LOG.c.text).where(mine).order_by(_LOG.c.id)):
                logs[name] = logs.get(name, "") + text
            return logs

    def artifacts(self, run: str | None = None) -> dict[str, bytes]:
        """The files kept with a run by name, without what is damaged."""
        with self._reading("its files") as connection:
            mine = _ARTIFACT.c.run_id == find_run(connection, self.path, run).id
            found = {}
            for name, content in _pairs(connection, select(_ARTIFACT.c.name, _ARTIFACT.c.content).where(mine)):
                with suppress(zlib.error, TypeError):
                    found[name] = zlib.decompress(content)
            return found

    def empirical_roofs(self, evidence: Evidence = Evidence.MEASURED) -> dict[RoofKey, float]:
        """The best verified operations per second by (device_uid, pipe, load)."""
        with self._reading("its summaries") as connection:
            return best_rates(connection, evidence)

    def empirical_bandwidth(self, device_uid: str, evidence: Evidence = Evidence.MEASURED) -> float | None:
        """The fastest read, copy or triad of a device, bytes per second, by all of its calibrations; ``None`` without one."""
        with self._reading("its calibrations") as connection:
            return best_bandwidth(connection, evidence, device_uid)

    def calibrations(self, device_uid: str, backend: str, evidence: Evidence = Evidence.MEASURED) -> CalibrationHistory:
        """Every calibration of a device as one backend sees it: its own empty kernels, and the chip's bandwidth."""
        with self._reading("its calibrations") as connection:
            return history(calibrated(connection, evidence, [device_uid]), device_uid, backend)

    def calibration(self, device_uid: str, backend: str, evidence: Evidence = Evidence.MEASURED) -> Calibration:
        """The latest calibration of a device as one backend sees it; every figure ``None`` where it has none."""
        return self.calibrations(device_uid, backend, evidence).latest

    def base_figures(
        self, device_uids: Collection[str], evidence: Evidence = Evidence.MEASURED, undisturbed: bool = False
    ) -> BaseFigures:
        """The latest figures of the calibrations of several devices, of each backend that measured one.

        ``undisturbed`` leaves out what was measured beside other work, or is known to its order of magnitude only.
        """
        with self._reading("its calibrations") as connection:
            found = calibrated(connection, evidence, device_uids)
            return latest(each for each in found if each.may_be_best or not undisturbed)

    def contended_figures(self, device_uids: Collection[str], evidence: Evidence = Evidence.MEASURED) -> frozenset[BaseKey]:
        """Which of those figures were measured beside other work, and stand for want of better ones."""
        with self._reading("its calibrations") as connection:
            return contended(calibrated(connection, evidence, device_uids))

    def selftests(self, device_uid: str | None = None) -> list[Selftest]:
        """The selftests of a device, or of every device, the newest first.

        Runs that were removed since are not among ``runs``; the fact ``pruned_runs`` names them.
        """
        with self._reading("its selftests") as connection:
            return selftests.load(connection, device_uid)

    def compiled(self) -> list[Compiled]:
        """Of each program on each target what was compiled last."""
        with self._reading("its compiled programs") as connection:
            return compiled.newest(connection)

    def compiled_by_keys(self, keys: Collection[str]) -> dict[str, Compiled]:
        """What was compiled of these keys."""
        with self._reading("its compiled programs") as connection:
            return compiled.by_keys(connection, keys)

    def repeatability(self, device_uid: str) -> Repeatability | None:
        """How well measurements of a device agree, by its newest selftest with a figure for it; ``None`` without one."""
        with self._reading("its selftests") as connection:
            return selftests.repeatability(connection, device_uid)

    def close(self) -> None:
        """Let go of everything."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @contextmanager
    def _reading(self, what: str) -> Iterator[Connection]:
        with sqlite.translated(self.path, StoreUnusable), converting(what), sqlite.reading(self._engine) as connection:
            yield connection

    def _of_runs(self, connection: Connection, wanted: Wanted) -> list[ColumnElement[bool]]:
        if wanted is None:
            return []
        names = [wanted] if isinstance(wanted, str) else wanted
        return [tables.Result.run_id.in_([find_run(connection, self.path, name).id for name in names])]

    def _find(self, connection: Connection, run: str | None, case: str) -> int:
        found = find_run(connection, self.path, run)
        return find_result(connection, found.id, found.name, case)


def _of_cases(workload_key: Wanted, case_key: Wanted) -> Iterator[ColumnElement[bool]]:
    """By the index of results by case: a key names a handful, and asked of the joined tables would look at every result."""
    keys = {tables.Workload.key: workload_key, tables.Case.key: case_key}
    cases = select(tables.Case.id).join(tables.Workload, tables.Workload.id == tables.Case.workload_id)
    for condition in _conditions(keys):
        yield tables.Result.case_id.in_(cases.where(condition))


def _conditions(filters: Mapping[Any, Wanted]) -> Iterator[ColumnElement[bool]]:
    for column, wanted in filters.items():
        if wanted is not None:
            yield column.in_([wanted] if isinstance(wanted, str) else list(wanted))


def _rows(connection: Connection, statement: Select[Any]) -> list[ResultRow]:
    roofs = Roofs(connection)
    return [to_listed_row(fields, roofs.fraction) for fields in fetch(connection, statement)]


def _pairs(connection: Connection, statement: Any) -> list[tuple[Any, Any]]:
    return [(first, second) for first, second in connection.execute(statement)]
