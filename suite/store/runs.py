"""Runs: their names, and finding one by what a person typed."""

import secrets
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, Select, func, select

from suite.errors import UsageError, nearest
from suite.rows import RunInfo
from suite.store import lease, tables
from suite.store.columns import refuse_non_count
from suite.store.damage import converting, json_object, texts
from suite.store.files import shown
from suite.store.listing import utc_text

STATUSES = ("running", "complete", "interrupted", "failed")
SELFTEST = "selftest"  # the experiment of runs that a selftest makes

_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"  # none that is mistaken for another
_SUFFIX_LENGTH = 4

_SECTIONS = ("jobs", "backends", "plugins")  # of a run's configuration, by the name of what each is about

_RUN = tables.table_of(tables.Run)
_RESULT = tables.table_of(tables.Result)


def new_name(started_at: datetime) -> str:
    """A run's id: its start to the second, so that names sort by time, and four characters against a clash."""
    suffix = "".join(secrets.choice(_ALPHABET) for _ in range(_SUFFIX_LENGTH))
    return f"{started_at:%Y%m%dT%H%M%S}-{suffix}"


@converting("its runs")
def find_run(connection: Connection, store: Path, given: str | None) -> Row[Any]:
    """The ``run`` row that an id, the beginning of one, ``latest`` or ``None`` (the latest) means.

    Runs that a selftest made are the latest only where there are no others.  ``UsageError`` when there is none or several.
    """
    if given is None or given == "latest":
        return _latest(connection, store)
    if not given:
        raise UsageError("an empty name is no run's: give an id of `roofbench show --runs`, the beginning of one, or latest")
    exact = connection.execute(select(_RUN).where(_RUN.c.name == given)).one_or_none()
    if exact is not None:
        return exact
    starting = _RUN.c.name.startswith(given, autoescape=True)
    found = connection.execute(select(_RUN).where(starting).order_by(_RUN.c.name).limit(4)).all()
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"run '{given}' may be {', '.join(row.name for row in found)}: give more of it")
    names = connection.scalars(select(_RUN.c.name).order_by(_RUN.c.started_at.desc()).limit(200)).all()
    raise UsageError(f"no run '{given}' in store {shown(store)}{nearest(given, names[:200] if len(names) < 9 else names)}")


def finished_counts(runs: Select[Any] | None = None) -> Select[Any]:
    """Select (run_id, number of cases with a result) for all runs, or for those whose ids are selected."""
    once = select(_RESULT.c.run_id, _RESULT.c.device_slot, _RESULT.c.case_id).distinct()
    if runs is not None:
        once = once.where(_RESULT.c.run_id.in_(runs))
    each = once.subquery()
    return select(each.c.run_id, func.count()).group_by(each.c.run_id)


def to_info(store: Path, row: Row[Any], finished: int) -> RunInfo:
    """A run as readers see it; one whose writer is gone without a word is ``interrupted``."""
    info = describe(row, finished)
    dead = info.status == "running" and lease.holder(store, info.run) is None
    return replace(info, status="interrupted") if dead else info


def describe(row: Row[Any], finished: int) -> RunInfo:
    """A run as it is stored; ``Damaged`` where it cannot be read."""
    with converting(f"run {row.id}"):
        refuse_non_count(row.planned, "planned")
        return RunInfo(
            run=row.name,
            experiment=row.experiment,
            status=row.status,
            started_at=utc_text(row.started_at),
            finished_at=utc_text(row.finished_at) if row.finished_at else None,
            planned=row.planned,
            finished=finished,
            argv=texts(row.argv, "argv"),
            overrides=texts(row.overrides, "overrides"),
            note=row.note,
            version=row.version,
            commit=row.commit,
            dirty=row.dirty,
            config=_config(row.config),
        )


def _config(stored: Any) -> dict[str, Any]:
    config = json_object(stored, "config")
    for name in _SECTIONS:
        if name in config:
            json_object(config[name], f"config {name}")
    return config


def _latest(connection: Connection, store: Path) -> Row[Any]:
    newest = select(_RUN).order_by(_RUN.c.started_at.desc(), _RUN.c.id.desc()).limit(1)
    own = connection.execute(newest.where(_RUN.c.experiment != SELFTEST)).one_or_none()
    found = own if own is not None else connection.execute(newest).one_or_none()
    if found is None:
        raise UsageError(f"store {shown(store)} holds no runs yet: run `roofbench run` first")
    return found
