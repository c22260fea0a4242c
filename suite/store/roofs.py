"""What a device has been seen to do: its best verified rates and its calibration, from what the store holds."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Double, and_, exists, false, func, or_, select, type_coerce

from suite.case import USUAL_DATA
from suite.errors import UsageError
from suite.hardware.catalogue import load
from suite.hardware.spec import HardwareSpec
from suite.jobs.calibration import CalibrationJob
from suite.outcome import WITH_ROOFS, Bound, Evidence, Outcome
from suite.roofline import Ceilings, EmpiricalRoofs, empirical_fraction, in_cache
from suite.rows import (
    BANDWIDTHS,
    WIDEST,
    BaseFigures,
    BaseKey,
    CalibrationHistory,
    DeviceRow,
    Figures,
    base_name,
    is_resolved,
)
from suite.store import tables
from suite.store.catalogue import to_device_row
from suite.store.columns import refuse_non_number
from suite.store.damage import UNREADABLE, converting
from suite.store.listing import utc_text
from suite.store.plausible import RANGES, refuse_implausible

_CASE = tables.table_of(tables.Case)
_DEVICE = tables.table_of(tables.Device)
_RESULT = tables.table_of(tables.Result)
_SUMMARY = tables.table_of(tables.Summary)
_WORKLOAD = tables.table_of(tables.Workload)


class Calibrated(NamedTuple):
    """One base figure with the UTC time at which it was measured, as result rows have it.

    One that may not be the best, as it is not resolved or was contended, bounds the results after it where nothing else is
    known.
    """

    finished_at: str
    key: BaseKey
    value: float
    may_be_best: bool
    contended: bool = False


class RoofKey(NamedTuple):
    """What one empirical peak belongs to."""

    device_uid: str
    pipe: str
    load: str


@converting("its summaries")
def best_rates(connection: Connection, evidence: Evidence, uids: Collection[str] | None = None) -> dict[RoofKey, float]:
    """The best verified operations per second of each device, pipe and load; of all devices, or of those named.

    What was contended or is not resolved is never the best, nor is a rate that none can have been, nor one on other than
    normal data: zeros leave a power limit more of the clock.  Of a job by several methods the newest alone counts that this
    store has: what another computes or times is not what its rate would be by that one.
    """
    # By the device's row first, which one index answers, then by chip: a chip has a row in every run.  Of each group the
    # index is read from the fastest down to the first that may be a roof; only these are looked at as rows.
    verified = (_SUMMARY.c.evidence == evidence.value, _SUMMARY.c.verified)
    found = select(_SUMMARY.c.device_id, _SUMMARY.c.pipe, _SUMMARY.c.load).where(*verified, _SUMMARY.c.pipe.is_not(None))
    if uids is not None:
        found = found.where(_SUMMARY.c.device_id.in_(select(_DEVICE.c.id).where(_DEVICE.c.uid.in_(uids))))
    group = found.distinct().subquery()
    same = (_SUMMARY.c[name] == group.c[name] for name in ("device_id", "pipe", "load"))
    usual = _is_usual(newest_methods(connection))
    fastest = (
        select(_SUMMARY.c.flop_s)
        .where(*verified, *same, _is_rate(_SUMMARY.c.flop_s), _is_resolved(), _was_alone(), usual)
        .order_by(_SUMMARY.c.flop_s.desc())
        .limit(1)
        .correlate(group)
        .scalar_subquery()
    )
    each = select(group, fastest.label("flop_s")).subquery()
    best = (
        select(_DEVICE.c.uid, each.c.pipe, each.c.load, func.max(each.c.flop_s))
        .join_from(each, _DEVICE, _DEVICE.c.id == each.c.device_id)
        .group_by(_DEVICE.c.uid, each.c.pipe, each.c.load)
    )
    rows = connection.execute(best)
    return {RoofKey(uid, pipe, load): flop_s for uid, pipe, load, flop_s in rows if flop_s is not None}


@converting("its calibrations")
def calibrated(connection: Connection, evidence: Evidence, uids: Collection[str] | None = None) -> list[Calibrated]:
    """Every base figure by the method of this version, the earliest first; of all devices, or of those named.

    Figures that none can have been are left out: their results say so.
    """
    # Few cases calibrate, and their results are found by them: by the device, all of its results would be looked at.
    calibrating = (
        select(_CASE.c.id)
        .join(_WORKLOAD, _WORKLOAD.c.id == _CASE.c.workload_id)
        .where(_WORKLOAD.c.job == CalibrationJob.name, _CASE.c.method_version == CalibrationJob.method_version)
    )
    statement = (
        select(
            _DEVICE.c.uid,
            _DEVICE.c.backend,
            _WORKLOAD.c.params,
            _CASE.c.dispatch,
            type_coerce(_SUMMARY.c.bytes_s, Double).label("bytes_s"),
            type_coerce(_SUMMARY.c.p50_s, Double).label("p50_s"),
            _RESULT.c.finished_at,
            and_(_is_resolved(), _was_alone()),
            _RESULT.c.contended,
        )
        .select_from(_WORKLOAD)
        .join(_CASE, _CASE.c.workload_id == _WORKLOAD.c.id)
        .join(_RESULT, _RESULT.c.case_id == _CASE.c.id)
        .join(_SUMMARY, _SUMMARY.c.result_id == _RESULT.c.id)
        .join(_DEVICE, _DEVICE.c.id == _RESULT.c.device_id)
        .where(_RESULT.c.case_id.in_(calibrating))
        .where(_RESULT.c.outcome == Outcome.OK.value, _RESULT.c.evidence == evidence.value)
        .order_by(_RESULT.c.finished_at, _RESULT.c.id)
    )
    if uids is not None:
        statement = statement.where(_RESULT.c.device_id.in_(select(_DEVICE.c.id).where(_DEVICE.c.uid.in_(uids))))
    found = []
    for uid, backend, params, dispatch, bytes_s, p50_s, finished_at, *standing in connection.execute(statement):
        op = str(params.get("op"))
        name = base_name(op, dispatch)
        value = p50_s if op == "empty" else bytes_s
        if name is not None and _is_plausible("p50_s" if op == "empty" else "bytes_s", value):
            found.append(Calibrated(utc_text(finished_at), BaseKey(uid, backend, name), value, *map(bool, standing)))
    return found


def _is_plausible(name: str, value: Any) -> bool:
    try:
        refuse_non_number(value)  # as it is in the file
        refuse_implausible(name, value)
    except UNREADABLE:
        return False
    return True


def _is_rate(column: ColumnElement[Any]) -> ColumnElement[bool]:
    """Whether a rate may be one; a text, which SQLite orders after all numbers, is none."""
    low, high, _ = RANGES["flop_s"]
    return type_coerce(column, Double).between(low, high)


def latest(found: Iterable[Calibrated]) -> BaseFigures:
    """What of each figure bounds a result now: the latest that may be the best, or where there is none the latest."""
    figures = Figures()
    for each in found:
        figures.enter(each.key, each.value, each.may_be_best)
    return figures.values


def contended(found: Iterable[Calibrated]) -> frozenset[BaseKey]:
    """The figures that bound results now although they were contended, for want of others."""
    figures, standing = Figures(), dict[BaseKey, Calibrated]()
    for each in found:
        if figures.enter(each.key, each.value, each.may_be_best):
            standing[each.key] = each
    return frozenset(key for key, each in standing.items() if each.contended)


def best_bandwidth(connection: Connection, evidence: Evidence, uid: str) -> float | None:
    """The memory roof of a device, bytes per second: its fastest read, copy or triad that was resolved and not contended."""
    found = calibrated(connection, evidence, [uid])
    return max((each.value for each in found if each.may_be_best and each.key.name in BANDWIDTHS), default=None)


def history(found: Iterable[Calibrated], device_uid: str, backend: str) -> CalibrationHistory:
    """How the calibration of one device under one backend came to be what it is."""
    figures = Figures()
    steps = []
    for each in found:
        if each.key.device_uid == device_uid:
            figures.enter(each.key, each.value, each.may_be_best)
            steps.append((each.finished_at, figures.calibration(device_uid, backend)))
    return CalibrationHistory(tuple(steps))


class Roofs:
    """What results are held against, looked up as their rows come: the same few devices again and again."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._devices: dict[tuple[str, str], _Seen] = {}
        self._newest: Mapping[str, int] | None = None

    def fraction(self, fields: Mapping[str, Any]) -> float | None:
        """The empirical fraction of a result, given as the fields of a row; ``None`` unless it was timed and verified.

        ``None`` as well for what a cache bounds: how fast it can be has not been measured; for a time that is not
        resolved: as it is no roof, it could lie anywhere above one; and for a contended one that does lie above, or one by an
        older method than the store has of its job.
        """
        evidence, uid = fields["evidence"], fields["device_uid"]
        if evidence not in WITH_ROOFS or fields["outcome"] != Outcome.OK or fields["flop_s"] is None:
            return None
        known = is_resolved(fields["interval_low_s"], fields["interval_high_s"], fields["p50_s"])
        if fields["bound"] in (Bound.CACHE, Bound.LINK) or not known:
            return None
        seen = self._devices.get((evidence, uid))
        if seen is None:
            seen = self._devices[evidence, uid] = _look_up(self._connection, Evidence(evidence), uid)
        share = empirical_fraction(
            fields["flop_s"],
            fields["bytes_s"],
            fields["arithmetic_intensity"],
            EmpiricalRoofs(seen.rates.get((fields["pipe"], fields["load"])), seen.bandwidth_bytes_s),
            in_cache(fields["cache"], fields["compulsory_bytes"], seen.llc_bytes),
            fields["bound"] == Bound.MEMORY,
        )
        return None if share is not None and share > 1 and (fields["contended"] or self._is_older(fields)) else share

    def _is_older(self, fields: Mapping[str, Any]) -> bool:
        """Whether a row of the store is by another method than those that set its roof; one being recorded is by the newest."""
        if "method_version" not in fields:
            return False
        if self._newest is None:
            self._newest = newest_methods(self._connection)
        return bool(fields["method_version"] != self._newest.get(fields["job"]))


class _Seen(NamedTuple):
    """One device under one kind of evidence."""

    rates: Mapping[tuple[str | None, str], float]  # by pipe and load
    bandwidth_bytes_s: float | None
    llc_bytes: int | None


def _look_up(connection: Connection, evidence: Evidence, uid: str) -> _Seen:
    last_seen = select(_DEVICE).where(_DEVICE.c.uid == uid).order_by(_DEVICE.c.id.desc()).limit(1)
    device = to_device_row(connection.execute(last_seen).one())
    best = best_rates(connection, evidence, [uid])
    bandwidth_bytes_s = best_bandwidth(connection, evidence, uid)
    return _Seen({(key.pipe, key.load): rate for key, rate in best.items()}, bandwidth_bytes_s, _llc_bytes(device))


def _is_resolved() -> ColumnElement[bool]:
    """Whether a median is known to within itself: ``NULL``, so no, where a single sample has no interval."""
    return _SUMMARY.c.interval_high_s - _SUMMARY.c.interval_low_s <= WIDEST * _SUMMARY.c.p50_s


def _was_alone() -> ColumnElement[bool]:
    """Whether nobody else is known to have used the device meanwhile."""
    return ~exists().where(_RESULT.c.id == _SUMMARY.c.result_id, _RESULT.c.contended).correlate(_SUMMARY)


def newest_methods(connection: Connection) -> dict[str, int]:
    """The newest version of each job's method by which this store has a case."""
    of_workload = _CASE.join(_WORKLOAD, _WORKLOAD.c.id == _CASE.c.workload_id)
    found = (
        select(_WORKLOAD.c.job, func.max(_CASE.c.method_version).label("newest"))
        .select_from(of_workload)
        .group_by(_WORKLOAD.c.job)
    )
    return {row.job: row.newest for row in connection.execute(found)}


def _is_usual(newest: Mapping[str, int]) -> ColumnElement[bool]:
    """Whether the operands were drawn as they are unless a user asks for others, and the job's newest method was used."""
    of_workload = _CASE.join(_WORKLOAD, _WORKLOAD.c.id == _CASE.c.workload_id).join(_RESULT, _RESULT.c.case_id == _CASE.c.id)
    by_newest = or_(false(), *(and_(_WORKLOAD.c.job == job, _CASE.c.method_version == newest[job]) for job in newest))
    usual = select(_RESULT.c.id).select_from(of_workload).where(_WORKLOAD.c.distribution == USUAL_DATA, by_newest)
    return usual.where(_RESULT.c.id == _SUMMARY.c.result_id).correlate(_SUMMARY).exists()


def _llc_bytes(device: DeviceRow) -> int | None:
    sheet = None
    if device.info.backend == "rocm" or device.info.llc_bytes is None:  # only there is the sheet asked (see Ceilings)
        with suppress(UsageError):  # a sheet of the user's own that is not here
            sheet = HardwareSpec.from_json(device.spec) if device.spec else load(device.hardware) if device.hardware else None
    return Ceilings(device.info, sheet).llc_bytes
