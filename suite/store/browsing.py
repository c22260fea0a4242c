"""What the dashboard asks of a store of any size: each question looks at one run or device, or at a few rows by their ids."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, Text, cast, func, select

from suite.errors import StoreUnusable
from suite.outcome import Evidence
from suite.rows import CalibrationHistory, DeviceRow, ResultRow
from suite.store import lease, sqlite, tables
from suite.store.catalogue import to_device_row
from suite.store.columns import SafeText
from suite.store.damage import Damaged
from suite.store.files import locate, shown
from suite.store.listing import fetch, is_latest, rows_statement, to_listed_row, utc_text
from suite.store.queries import Reader
from suite.store.roofs import Roofs, best_bandwidth, best_rates, calibrated, history
from suite.store.scopes import Entry, Found, Group, Scope, beginning, groups_of, in_order, joined, of_run
from suite.store.strange import strange_objects

_CASE = tables.table_of(tables.Case)
_DEVICE = tables.table_of(tables.Device)
_LOG = tables.table_of(tables.Log)
_RESULT = tables.table_of(tables.Result)
_RUN = tables.table_of(tables.Run)
_SUMMARY = tables.table_of(tables.Summary)
_WORKLOAD = tables.table_of(tables.Workload)

MOST_RUNS, MOST_WORKLOADS = 10_000, 20_000
_AT_ONCE = 500  # ids in one statement


class Browser(Reader):
    """A reader with the questions of people who look around."""

    @classmethod
    def open(cls, url: str, *, busy_timeout_s: float = sqlite.BUSY_TIMEOUT_S) -> Self:
        """See ``Reader.open``; also refuses a file with views, triggers or virtual tables, which could make reading endless."""
        try:
            browser = super().open(url, busy_timeout_s=busy_timeout_s)
        except UnicodeDecodeError as error:  # names of tables that are no text
            raise StoreUnusable(
                f"store {shown(locate(url))} is damaged: its schema is no text; ask for another copy of it"
            ) from error
        with browser._reading("its schema") as connection:
            _refuse_strange_objects(connection, browser.path)
        return browser

    def entries(self) -> list[Entry]:
        """Every run, the latest first, by its row alone and the newest of its results."""
        last = select(func.max(_RESULT.c.id)).where(_RESULT.c.run_id == _RUN.c.id).correlate(_RUN).scalar_subquery()
        until = select(_SUMMARY.c.formulas_version).where(_SUMMARY.c.result_id <= last)
        formulas = until.order_by(_SUMMARY.c.result_id.desc()).limit(1).scalar_subquery()
        texts = [beginning(_RUN.c[name]) for name in ("name", "experiment", "status", "note")]
        whole = select(*texts, _RUN.c.started_at, _RUN.c.finished_at, _RUN.c.planned, last, formulas)
        with self._reading("its runs") as connection:
            rows = connection.execute(whole.order_by(_RUN.c.started_at.desc(), _RUN.c.id.desc()).limit(MOST_RUNS)).all()
        return [self._entry(*row) for row in rows]

    def groups(self, run: str) -> list[Group]:
        """What a run holds, group by group; at most ``MOST_GROUPS``."""
        with self._reading("its results") as connection:
            return [Group(run, *row) for row in connection.execute(groups_of(run))]

    def device_names(self) -> dict[str, str]:
        """Every chip of any run by its uid, under the name that the newest run has for it."""
        texts = [beginning(column) for column in (_DEVICE.c.uid, _DEVICE.c.name)]
        with self._reading("its devices") as connection:
            return {str(uid): str(name) for uid, name in connection.execute(select(*texts).order_by(_DEVICE.c.id))}

    def device(self, uid: str) -> DeviceRow:
        """A chip as the newest run recorded it."""
        newest = select(_DEVICE).where(_DEVICE.c.uid == uid).order_by(_DEVICE.c.id.desc()).limit(1)
        with self._reading("its devices") as connection:
            row = connection.execute(newest).one_or_none()
            if row is None:
                raise Damaged("its devices", f"there is none of the uid {uid[:40]}")
            return to_device_row(row)

    def roofs_of(self, uid: str, evidence: Evidence) -> tuple[dict[tuple[str, str], float], float | None]:
        """The best verified rate of a device by pipe and load, and its best bandwidth."""
        with self._reading("its summaries") as connection:
            best = best_rates(connection, evidence, [uid])
            return {(key.pipe, key.load): rate for key, rate in best.items()}, best_bandwidth(connection, evidence, uid)

    def calibrations_of(self, uid: str, backend: str, evidence: Evidence) -> CalibrationHistory:
        """The calibrations of one device under one backend."""
        with self._reading("its calibrations") as connection:
            return history(calibrated(connection, evidence, [uid]), uid, backend)

    def workloads(self, scope: Scope) -> list[Found]:
        """What a scope has results of; at most ``MOST_WORKLOADS``."""
        names = (_WORKLOAD.c.id, _WORKLOAD.c.format, cast(_WORKLOAD.c.params, Text), cast(_WORKLOAD.c.semantics, Text))
        with self._reading("its workloads") as connection:
            chosen = joined(select(*names).distinct(), scope).limit(MOST_WORKLOADS)
            return [Found(*row) for row in connection.execute(chosen)]

    def newest(self, scope: Scope, workloads: Collection[int] | None = None) -> list[int]:
        """The ids of the newest result of each case on each device under each kind of evidence, in the order of the cases."""
        chosen = joined(select(func.max(_RESULT.c.id)), scope)
        if workloads is not None:
            chosen = chosen.where(_CASE.c.workload_id.in_(sorted(workloads)))
        each = (_RESULT.c.case_id, _DEVICE.c.uid, _RESULT.c.evidence)
        grouped = chosen.group_by(*each).order_by(*each)
        with self._reading("its results") as connection:
            return [int(number) for number in connection.scalars(grouped)]

    def page(self, scope: Scope, limit: int, offset: int = 0, order: str = "") -> list[ResultRow]:
        """Rows of a scope, the newest first, or by a column of ``ORDERS``.  Ordering looks at all of the scope."""
        ids = joined(select(_RESULT.c.id), scope).where(is_latest())
        if order:
            ids = ids.outerjoin(_SUMMARY, _SUMMARY.c.result_id == _RESULT.c.id).order_by(*in_order(order))
        with self._reading("its results") as connection:
            found = connection.scalars(ids.order_by(func.coalesce(_RESULT.c.id, 0).desc()).limit(limit).offset(offset)).all()
            return _rows(connection, found)

    def rows(self, ids: Sequence[int]) -> list[ResultRow]:
        """Rows by their ids, in that order; what is not there any more is left out."""
        with self._reading("its results") as connection:
            return _rows(connection, ids)

    def log_sizes(self, run: str) -> dict[str, int]:
        """The names of a run's logs, each with its length in characters."""
        sizes = select(beginning(_LOG.c.name), func.sum(func.length(_LOG.c.text))).where(of_run(_LOG, run))
        with self._reading("its logs") as connection:
            return {str(name): int(size) for name, size in connection.execute(sizes.group_by(_LOG.c.name))}

    def log_end(self, run: str, name: str, most: int) -> str:
        """The last ``most`` characters of a log."""
        pieces = select(func.substr(_LOG.c.text, -most, type_=SafeText())).where(of_run(_LOG, run), _LOG.c.name == name)
        parts: list[str] = []
        with self._reading("its logs") as connection:
            for text in connection.scalars(pieces.order_by(_LOG.c.id.desc())):
                parts.append(str(text))
                if sum(map(len, parts)) >= most:
                    break
        return "".join(reversed(parts))[-most:]

    def _entry(self, run: str, experiment: str, status: str, note: str, began: Any, ended: Any, *counts: int | None) -> Entry:
        if status == "running" and lease.holder(self.path, run) is None:
            status = "interrupted"
        planned, last, formulas = (count or 0 for count in counts)
        times = (utc_text(began), utc_text(ended) if ended else None)
        return Entry(run, experiment, status, note, *times, planned, last, formulas)


def _rows(connection: Connection, ids: Sequence[int]) -> list[ResultRow]:
    roofs, found = Roofs(connection), {}
    for first in range(0, len(ids), _AT_ONCE):
        wanted = rows_statement(tables.Result.id.in_(ids[first : first + _AT_ONCE]))
        for fields in fetch(connection, wanted):
            row = to_listed_row(fields, roofs.fraction)
            found[row.result_id] = row
    return [found[number] for number in ids if number in found]


def _refuse_strange_objects(connection: Connection, path: Path) -> None:
    strange = len(strange_objects(connection))
    if strange:
        raise StoreUnusable(
            f"store {shown(path)} has {strange} views, triggers or virtual tables, which no store of roofbench has: "
            "ask for another copy of it"
        )
