"""Selftests of devices: written, read, and what becomes of them when runs that they rest on are removed.

A selftest names its runs by their uid, which no merge changes.  It stays while one of them does, and says in its facts
which are gone; it goes with the last of them, so that a device whose runs were all removed leaves nothing behind.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, select

from suite.selftest.record import PRUNED, Finding, Repeatability, Selftest, Status
from suite.selftest.usable import standing
from suite.store import tables
from suite.store.columns import dump_json, refuse_non_count
from suite.store.damage import converting, json_object
from suite.store.prepared import prepared_insert

_RUN = tables.table_of(tables.Run)
_SELFTEST = tables.table_of(tables.Selftest)
_ADD = prepared_insert(_SELFTEST)
_FIGURES = ("cycles_rel", "bytes_rel", "in_cycles", "cases")


class Touched(NamedTuple):
    """Selftests that rest on runs which are removed: the rows that go with the last of theirs, and how many stay."""

    last: tuple[int, ...]
    noted: int


def add(connection: Connection, selftest: Selftest) -> None:
    """Store a selftest, once; ``ValueError`` where one of its runs is not in the store."""
    uids = {name: uid for uid, name in _runs(connection).items()}
    missing = [name for name in selftest.runs if name not in uids]
    if missing:
        raise ValueError(f"the selftest rests on run {missing[0]}, which is not in the store")
    columns = _columns(selftest, [[uids[name], name] for name in selftest.runs])
    if not known(connection, columns["digest"]):
        _ADD.run(connection, columns)


def known(connection: Connection, digest: str) -> bool:
    """Whether the store has a selftest of this content."""
    return connection.scalar(select(_SELFTEST.c.id).where(_SELFTEST.c.digest == digest)) is not None


def load(connection: Connection, device_uid: str | None) -> list[Selftest]:
    """The selftests of a device, or of all, the newest first."""
    statement = select(_SELFTEST).order_by(_SELFTEST.c.finished_at.desc(), _SELFTEST.c.id.desc())
    if device_uid is not None:
        statement = statement.where(_SELFTEST.c.device_uid == device_uid)
    rows = connection.execute(statement).all()
    names = _runs(connection) if rows else {}
    return [to_selftest(row, names) for row in rows]


def repeatability(connection: Connection, device_uid: str) -> Repeatability | None:
    """The repeatability of a device, of the newest selftest that tells one: see ``suite.selftest.usable``."""
    used = standing(load(connection, device_uid)).used
    return used.repeatability if used is not None else None


def to_selftest(row: Any, names: Mapping[str, str]) -> Selftest:
    """A ``selftest`` row as readers see it, with its runs by the names that they have in this store.

    ``names`` are those of the store's runs by uid.  ``Damaged`` where the row cannot be read.
    """
    with converting(f"selftest {row.id}"):
        runs = list(runs_of(row))
        gone = [name for uid, name in runs if uid not in names]
        return Selftest(
            device_uid=row.device_uid,
            device=row.device,
            backend=row.backend,
            runs=tuple(names[uid] for uid, _ in runs if uid in names),
            finished_at=row.finished_at,
            findings=tuple(_finding(each) for each in _list(row.findings, "findings")),
            repeatability=_repeatability(row),
            facts=_facts(row.facts) | ({PRUNED: ", ".join(gone)} if gone else {}),
        )


def runs_of(row: Any) -> Iterator[tuple[str, str]]:
    """The uid of each run that a selftest rests on, with the name that it had."""
    for pair in _list(row.runs, "runs"):
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(each, str) for each in pair):
            raise ValueError(f"{str(pair)[:40]} is no run's uid and name")
        yield pair[0], pair[1]


def touched(connection: Connection, runs: Collection[int]) -> Touched:
    """What removing these runs means for the selftests of the store."""
    removed = set(connection.scalars(select(_RUN.c.uid).where(_RUN.c.id.in_(runs))))
    left = _runs(connection).keys() - removed
    last, noted = [], 0
    for row in connection.execute(select(_SELFTEST.c.id, _SELFTEST.c.runs)):
        with converting(f"selftest {row.id}"):
            uids = {uid for uid, _ in runs_of(row)}
        if uids & removed:
            noted += bool(uids & left)
            last += [] if uids & left else [row.id]
    return Touched(tuple(last), noted)


def remove(connection: Connection, ids: Sequence[int]) -> None:
    """Remove selftests by their rows."""
    connection.execute(delete(_SELFTEST).where(_SELFTEST.c.id.in_(ids)))


def _runs(connection: Connection) -> dict[str, str]:
    """The name of each run by its uid."""
    return {row.uid: row.name for row in connection.execute(select(_RUN.c.uid, _RUN.c.name))}


def _columns(selftest: Selftest, runs: list[list[str]]) -> dict[str, Any]:
    content = selftest.to_json() | {"runs": runs, "finished_at": selftest.finished_at.astimezone(UTC).isoformat()}
    names = ("device_uid", "device", "backend", "findings", "facts", "runs")
    figures = selftest.repeatability._asdict() if selftest.repeatability else dict.fromkeys(_FIGURES)
    return {
        **{name: content[name] for name in names},
        **figures,
        "digest": hashlib.sha256(dump_json(dict(sorted(content.items()))).encode()).hexdigest()[:32],
        "status": selftest.status.value,
        "finished_at": selftest.finished_at,
    }


def _finding(stored: object) -> Finding:
    found = json_object(stored, "a finding")
    for text in (found["name"], found["says"]):
        if not isinstance(text, str):
            raise ValueError(f"a finding's {str(text)[:40]} is no text")
    return Finding(found["name"], Status(found["status"]), found["says"], json_object(found["figures"], "figures"))


def _repeatability(row: Any) -> Repeatability | None:
    figures = [getattr(row, name) for name in _FIGURES]
    if all(figure is None for figure in figures):
        return None
    if row.in_cycles is None or row.cases is None:
        raise ValueError("its repeatability is not whole")
    refuse_non_count(row.cases, "cases")
    for name in ("cycles_rel", "bytes_rel"):  # distances, of none of which there may be less than nothing
        if (value := getattr(row, name)) is not None and value < 0:
            raise ValueError(f"{name} {value!r} is below 0")
    return Repeatability(*figures)


def _facts(stored: object) -> dict[str, str | None]:
    facts = json_object(stored, "facts")
    if not all(value is None or isinstance(value, str) for value in facts.values()):
        raise ValueError("facts are no texts")
    return facts


def _list(stored: object, name: str) -> list[Any]:
    if not isinstance(stored, list):
        raise ValueError(f"{name} is no list")
    return stored
