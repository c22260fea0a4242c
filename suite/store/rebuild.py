"""Deriving the summary table anew from samples, work counts and telemetry, after the formulas changed."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from sqlalchemy import Connection, Integer, RowMapping, delete, insert, or_, select, text

from suite.case import Case, Regime, Workload, items
from suite.measurement import Measurement, is_unread
from suite.outcome import Evidence, Outcome
from suite.roofline import FORMULAS_VERSION, Summary
from suite.rows import Calibration, CalibrationHistory, DeviceRow
from suite.store import tables
from suite.store.catalogue import to_device_row
from suite.store.columns import refuse_non_number
from suite.store.damage import UNREADABLE, Damaged, converting, damaged
from suite.store.detail import load_measurement
from suite.store.listing import SUMMARY_FIELDS, utc_text
from suite.store.plausible import RANGES, refuse_crossed, refuse_implausible, refuse_rates_of_nothing
from suite.store.roofs import Calibrated, calibrated, history
from suite.store.session import Session
from suite.work import Work

CHUNK = 500

_CASE = tables.table_of(tables.Case)
_DEVICE = tables.table_of(tables.Device)
_RESULT = tables.table_of(tables.Result)
_SAMPLES = tables.table_of(tables.SampleBlob)
_SUMMARY = tables.table_of(tables.Summary)
_WORKLOAD = tables.table_of(tables.Workload)


class Stored(NamedTuple):
    """Everything of one timed result that its summary is derived from."""

    measurement: Measurement
    work: Work
    case: Case
    device: DeviceRow
    calibration: Calibration


class _Known:
    """Which calibration stood when a result finished, as its run had it; a later one is not what bound that result."""

    def __init__(self, found: Mapping[str, Sequence[Calibrated]]) -> None:
        self._found = found
        self._histories: dict[tuple[str, str, str], CalibrationHistory] = {}

    def at(self, result: RowMapping, device: DeviceRow) -> Calibration:
        key = evidence, uid, backend = result["evidence"], device.info.uid, device.info.backend
        if key not in self._histories:
            self._histories[key] = history(self._found[evidence], uid, backend)
        return self._histories[key].at(utc_text(result["finished_at"]))


Summarize = Callable[[Stored], Summary | None]
Tell = Callable[[Damaged], None]


def rebuild(
    session: Session,
    summarize: Summarize,
    everything: bool = False,
    but: Collection[int] = (),
    tell: Tell = lambda found: None,
    also: Collection[int] = (),
) -> int:
    """Replace the summaries of other versions of the formulas, and those that are missing; return how many.

    ``everything`` replaces those of this version too; else those of the results in ``also`` are, which cannot be so.
    Calibrations come first: the others' bounds rest on them.  Results in ``but`` are left as they are, and so is one of which
    no summary follows that could be: ``tell`` is given why.
    """
    count = 0
    for calibrating in (True, False):
        last = 0
        while ids := _stale(session, last, calibrating, None if everything else also):
            count += _replace(session, [each for each in ids if each not in but], summarize, tell)
            last = ids[-1]
    return count


def _stale(session: Session, last: int, calibrating: bool, also: Collection[int] | None) -> Sequence[int]:
    """The next results to derive anew: what is stale, and those in ``also``, or where that is ``None`` all."""
    statement = (
        select(_RESULT.c.id)
        .join(_SAMPLES, _SAMPLES.c.result_id == _RESULT.c.id)
        .join(_CASE, _CASE.c.id == _RESULT.c.case_id)
        .join(_WORKLOAD, _WORKLOAD.c.id == _CASE.c.workload_id)
        .outerjoin(_SUMMARY, _SUMMARY.c.result_id == _RESULT.c.id)
        .where(_RESULT.c.id > last, (_WORKLOAD.c.job == "calibration") == calibrating)
        .order_by(_RESULT.c.id)
        .limit(CHUNK)
    )
    if also is not None:
        stale = or_(_SUMMARY.c.result_id.is_(None), _SUMMARY.c.formulas_version != FORMULAS_VERSION)
        # As JSON: there may be more of them than a statement takes parameters.
        wanted = text("SELECT value FROM json_each(:ids)").bindparams(ids=json.dumps(sorted(also))).columns(value=Integer)
        statement = statement.where(or_(stale, _RESULT.c.id.in_(wanted)))
    with session.transaction() as connection:
        return connection.scalars(statement).all()


def _replace(session: Session, ids: Sequence[int], summarize: Summarize, tell: Tell) -> int:
    left: list[Damaged] = []
    with session.transaction() as connection:
        derived = dict(_derive(connection, ids, summarize, left.append))
        connection.execute(delete(_SUMMARY).where(_SUMMARY.c.result_id.in_(derived)))
        values = [each for each in derived.values() if each is not None]
        if values:
            connection.execute(insert(_SUMMARY), values)
    for found in left:
        tell(found)
    return len(derived)


def _derive(
    connection: Connection, ids: Sequence[int], summarize: Summarize, tell: Tell
) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """By its id the summary of each result, ``None`` where it has none any more."""
    known = _Known({kind.value: calibrated(connection, kind) for kind in Evidence})
    with converting("its devices and results"):
        devices = {row.id: to_device_row(row) for row in connection.execute(select(_DEVICE))}
        results = connection.execute(select(_RESULT).where(_RESULT.c.id.in_(ids)).order_by(_RESULT.c.id)).mappings().all()
    for result in results:
        where = f"result {result['id']}"
        with converting(where):
            device, case = devices[result["device_id"]], _load_case(connection, result["case_id"])
            work = Work(result["flops"], result["compulsory_bytes"], result["pipe"], result["traffic_bytes"])
        try:
            measurement = load_measurement(connection, result)
            if is_unread(measurement):
                raise ValueError("its telemetry cannot be read")
            summary = summarize(Stored(measurement.as_read(), work, case, device, known.at(result, device)))
            columns = None if summary is None else _columns(result, case, summary)
        except UNREADABLE as error:
            tell(damaged(where, error))
            continue
        yield result["id"], columns


def _columns(result: RowMapping, case: Case, summary: Summary) -> dict[str, Any]:
    """The row of ``summary``; ``ValueError`` for one that readers would refuse."""
    derived = {field.name: getattr(summary, field.name) for field in fields(summary)}
    for name in SUMMARY_FIELDS:
        value = derived[name]
        if name in RANGES and value is not None:
            try:
                refuse_non_number(value)
                refuse_implausible(name, value)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
    refuse_crossed(derived)
    refuse_rates_of_nothing({**result, **derived})
    return {
        "result_id": result["id"],
        "load": case.regime.load,
        "verified": result["outcome"] == Outcome.OK,
        **{name: result[name] for name in ("device_id", "evidence", "pipe")},
        **derived,
    }


def _load_case(connection: Connection, case_id: int) -> Case:
    row = connection.execute(select(_CASE).where(_CASE.c.id == case_id)).one()
    workload = connection.execute(select(_WORKLOAD).where(_WORKLOAD.c.id == row.workload_id)).mappings().one()
    return Case(
        Workload.from_json(dict(workload)),
        row.implementation,
        row.backend,
        Regime(row.cache, row.load, row.dispatch),
        items(row.switches),
        row.method_version,
    )
