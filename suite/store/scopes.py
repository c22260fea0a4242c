"""Which results people ask about while they look around, and the statements that find them without looking at others."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Text, UnaryExpression, and_, case, cast, func, literal, or_, select, tuple_

from suite.outcome import Bound
from suite.rows import WIDEST
from suite.store import tables
from suite.store.columns import SafeText
from suite.store.listing import is_latest

_CASE = tables.table_of(tables.Case)
_DEVICE = tables.table_of(tables.Device)
_RESULT = tables.table_of(tables.Result)
_RUN = tables.table_of(tables.Run)
_SUMMARY = tables.table_of(tables.Summary)
_WORKLOAD = tables.table_of(tables.Workload)

MOST_GROUPS = 5_000  # of one run; a run of every job, format, regime and implementation has some hundreds
MOST_TEXT = 200  # characters of a name or note that are read: a hostile file may have megabytes there
_RATE = 1e30  # a rate over this is below every share, so that one column ranks results with a share and those without


class Entry(NamedTuple):
    """One run in the list of runs.  ``last`` is the id of its newest result, 0 where it has none yet.

    An entry that is equal to an earlier one has the same results: ``formulas`` is the version that the newest timed result by
    then was derived by.
    """

    run: str
    experiment: str
    status: str
    note: str
    started_at: str
    finished_at: str | None
    planned: int
    last: int
    formulas: int


class Group(NamedTuple):
    """Results of one run that share everything people choose by, how many there are, and the best of them.

    ``semantics`` is JSON.  ``bound`` is ``None`` for what was not timed; ``is_trusted`` where nothing else is known to have
    used the device and the median is resolved, ``is_resolved`` where it is that at least.  ``standing`` ranks: the share of the
    spec roof where it is known, else the rate (of bytes where memory bounds) far below every share.  ``best`` is the id of the
    result of the highest.
    """

    run: str
    device_uid: str
    device: str
    job: str
    format: str
    semantics: str
    implementation: str
    cache: str
    load: str
    dispatch: str
    evidence: str
    outcome: str
    bound: str | None
    is_trusted: bool
    is_resolved: bool
    has_share: bool
    results: int
    standing: float
    best: int


class Scope(NamedTuple):
    """Which results are meant: of each field any of what it holds, and everything where it is empty.

    ``formats`` are (format, semantics as JSON), ``regimes`` (cache, load, dispatch).
    """

    runs: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    formats: tuple[tuple[str, str], ...] = ()
    regimes: tuple[tuple[str, str, str], ...] = ()
    implementations: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


class Found(NamedTuple):
    """A workload that a scope has results of; ``params`` and ``semantics`` are JSON."""

    workload_id: int
    format: str
    params: str
    semantics: str


_RESOLVED = _SUMMARY.c.interval_high_s - _SUMMARY.c.interval_low_s <= WIDEST * _SUMMARY.c.p50_s
ORDERS: dict[str, UnaryExpression[Any]] = {
    "best share of spec": _SUMMARY.c.fraction_spec.desc(),
    "highest rate": _SUMMARY.c.flop_s.desc(),
    "highest bandwidth": _SUMMARY.c.bytes_s.desc(),
    "longest": _SUMMARY.c.p50_s.desc(),
    "shortest": _SUMMARY.c.p50_s.asc(),
}


def in_order(order: str) -> tuple[ColumnElement[Any], ...]:
    """By a column of ``ORDERS``; a median that is not resolved comes after all that are, and what has no value last."""
    column = ORDERS[order]
    rank = case((column.element.is_(None), 2), (_RESOLVED, 0), else_=1)
    return rank, column


def groups_of(run: str) -> Select[Any]:
    """One group by everything chosen by, at most ``MOST_GROUPS``.

    ``max`` is the only aggregate beside ``count``, of which SQLite gives the other columns of the same row: the id of the best
    comes without sorting, which would take three times as long.
    """
    trusted = and_(_RESOLVED, func.coalesce(_RESULT.c.contended, literal(False)) == literal(False))
    does = and_(_SUMMARY.c.flop_s > 0, _SUMMARY.c.bound.is_distinct_from(Bound.MEMORY))
    rate = case((does, _SUMMARY.c.flop_s), else_=_SUMMARY.c.bytes_s) / _RATE
    keys = {
        "device_id": _RESULT.c.device_id,
        "job": _WORKLOAD.c.job,
        "format": _WORKLOAD.c.format,
        "semantics": cast(_WORKLOAD.c.semantics, Text),
        "implementation": _CASE.c.implementation,
        "cache": _CASE.c.cache,
        "load": _CASE.c.load,
        "dispatch": _CASE.c.dispatch,
        "evidence": _RESULT.c.evidence,
        "outcome": _RESULT.c.outcome,
        "bound": _SUMMARY.c.bound,
        "is_trusted": func.coalesce(trusted, literal(False)),
        "is_resolved": func.coalesce(_RESOLVED, literal(False)),
        "has_share": _SUMMARY.c.fraction_spec.is_not(None),
    }
    standing = func.max(func.coalesce(_SUMMARY.c.fraction_spec, rate, literal(0.0)))
    labelled = [column.label(name) for name, column in keys.items()]
    chosen = select(*labelled, func.count().label("results"), standing.label("standing"), _RESULT.c.id.label("best"))
    mine = chosen.where(of_run(_RESULT, run), is_latest())
    each = _from_results(mine).outerjoin(_SUMMARY, _SUMMARY.c.result_id == _RESULT.c.id).group_by(*labelled)
    found = each.limit(MOST_GROUPS).subquery()
    first = [beginning(column) for column in (_DEVICE.c.uid, _DEVICE.c.name)]
    texts = Group._fields[3 : Group._fields.index("is_trusted")]
    rest = [beginning(found.c[name]) if name in texts else found.c[name] for name in Group._fields[3:]]
    return select(*first, *rest).join_from(found, _DEVICE, _DEVICE.c.id == found.c.device_id)


def beginning(text: ColumnElement[Any]) -> ColumnElement[Any]:
    """The first characters of a text, which may be of any length."""
    return func.substr(text, 1, MOST_TEXT, type_=SafeText())


def joined(statement: Select[Any], scope: Scope) -> Select[Any]:
    """Where runs or devices are named, results are found by these, and what they refer to is joined from outside.

    By a job or a format SQLite would look at every run.
    """
    named = bool(scope.runs or scope.devices)
    joined = _from_results(statement, isouter=named).where(*_conditions(scope, _sifted if named else _searched))
    return joined.join(_DEVICE, _DEVICE.c.id == _RESULT.c.device_id)


def _from_results(statement: Select[Any], isouter: bool = False) -> Select[Any]:
    joined = statement.select_from(_RESULT).join(_CASE, _CASE.c.id == _RESULT.c.case_id, isouter=isouter)
    return joined.join(_WORKLOAD, _WORKLOAD.c.id == _CASE.c.workload_id, isouter=isouter)


def _sifted(column: Any) -> ColumnElement[Any]:
    """A column as no index has it."""
    return func.coalesce(column, "")


def _searched(column: Any) -> ColumnElement[Any]:
    found: ColumnElement[Any] = column
    return found


def _conditions(scope: Scope, by: Callable[[Any], ColumnElement[Any]]) -> Iterator[ColumnElement[bool]]:
    if scope.runs:
        yield _RESULT.c.run_id.in_(select(_RUN.c.id).where(_RUN.c.name.in_(scope.runs)))
    if scope.devices:
        own = by(_RESULT.c.device_id) if scope.runs else _RESULT.c.device_id
        yield own.in_(select(_DEVICE.c.id).where(_DEVICE.c.uid.in_(scope.devices)))
    if scope.formats:
        semantics = cast(_WORKLOAD.c.semantics, Text)
        yield or_(*(and_(by(_WORKLOAD.c.format) == name, semantics == said) for name, said in scope.formats))
    if scope.regimes:
        yield tuple_(*map(by, (_CASE.c.cache, _CASE.c.load, _CASE.c.dispatch))).in_(scope.regimes)
    columns = {_WORKLOAD.c.job: scope.jobs, _CASE.c.implementation: scope.implementations, _RESULT.c.evidence: scope.evidence}
    yield from (by(column).in_(wanted) for column, wanted in columns.items() if wanted)


def of_run(table: Any, run: str) -> ColumnElement[bool]:
    """Rows of ``table`` that belong to the run of this name."""
    found: ColumnElement[bool] = table.c.run_id == select(_RUN.c.id).where(_RUN.c.name == run).scalar_subquery()
    return found
