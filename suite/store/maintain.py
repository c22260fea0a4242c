"""Looking after a store: upgrade, merge, prune, vacuum, check, rebuild.  Each works on a path or an ``sqlite:///`` URL."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from shutil import disk_usage
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, select

from suite.errors import StoreUnusable, UsageError
from suite.store import lease, remedy, schema, selftests, sqlite, tables
from suite.store import rebuild as rebuilding
from suite.store.check import damage, problems
from suite.store.damage import Damaged
from suite.store.files import locate, refuse_irregular, refuse_unwritable, shown
from suite.store.foreign import foreign_log
from suite.store.integrity import flaws
from suite.store.merge import Merged, merge, refuse_source
from suite.store.problem import FileProblem, Problem
from suite.store.rebuild import Stored, Summarize
from suite.store.runs import find_run
from suite.store.schema import Upgrade
from suite.store.unfolded import unfolded
from suite.store.writer import Store

__all__ = [
    "Merged", "Problem", "Pruned", "Stored", "Summarize", "Upgrade", "Vacuumed",
    "check", "in_log", "merge", "prune", "rebuild", "refuse_source", "remedies", "upgrade", "vacuum",
]  # fmt: skip

_CASE = tables.table_of(tables.Case)
_RESULT = tables.table_of(tables.Result)
_RUN = tables.table_of(tables.Run)
_WORKLOAD = tables.table_of(tables.Workload)


Tell = Callable[[Problem], None]


def _tell_nobody(problem: Problem) -> None:
    pass


class Pruned(NamedTuple):
    """Runs that were removed (or would be), how many results with them, and runs kept because they are being written.

    ``selftests`` counts those that went with the last run that they rested on, ``noted`` those that stay, with a note of the
    runs that are gone.
    """

    runs: tuple[str, ...]
    results: int
    live: tuple[str, ...]
    selftests: int = 0
    noted: int = 0


class Vacuumed(NamedTuple):
    """The size of the file before and after."""

    before_bytes: int
    after_bytes: int


def upgrade(url: str) -> Upgrade:
    """Bring an existing store to this version's schema, after a copy; says what was done, which may be nothing."""
    with _open(url) as store:
        return store.migrated


def prune(url: str, *, runs: Sequence[str] = (), before: datetime | None = None, dry_run: bool = False) -> Pruned:
    """Remove the runs named and those that started before a time, with everything they own.

    A selftest stays while one of the runs that it rests on does, and says which are gone; it goes with the last of them.
    A run that a live process is writing is kept; ``UsageError`` where it was named, or where no such run is.
    ``dry_run`` only says what would be removed.
    """
    with _open(url, grows=False) as store, store.session.transaction() as connection:
        named = {row.id: row.name for row in (find_run(connection, store.path, run) for run in runs)}
        chosen = named | _started_before(connection, before)
        writers = {name: holder for name in chosen.values() if (holder := lease.holder(store.path, name)) is not None}
        for name in writers.keys() & named.values():
            raise UsageError(f"run {name} is being written by {writers[name]}: wait until it ends, or stop it")
        removed = {run_id: name for run_id, name in chosen.items() if name not in writers}
        results = connection.scalar(select(func.count()).where(_RESULT.c.run_id.in_(removed))) or 0
        found = selftests.touched(connection, removed)
        if not dry_run:
            selftests.remove(connection, found.last)
            _remove(connection, store.path, removed)
        return Pruned(tuple(sorted(removed.values())), results, tuple(sorted(writers)), len(found.last), found.noted)


def vacuum(url: str) -> Vacuumed:
    """Give back the space of what was removed; nobody else may be writing.

    Takes up to the store's size beside it and as much for a temporary file; ``StoreUnusable`` says where how much is free.
    """
    path = locate(url)
    with _saying_space(path):
        with _open(url, grows=False):
            before = path.stat().st_size
        sqlite.vacuum(path)
    return Vacuumed(before, path.stat().st_size)


@contextmanager
def _saying_space(path: Path) -> Iterator[None]:
    try:
        yield
    except StoreUnusable as error:
        cause = getattr(error.__cause__, "orig", error.__cause__)
        if not getattr(cause, "sqlite_errorname", "").startswith(("SQLITE_FULL", "SQLITE_IOERR_SHM")):  # the log's index
            raise
        size, beside, temporary = path.stat().st_size, path.parent, sqlite.temporary_folder()
        raise StoreUnusable(
            f"store {shown(path)} cannot be vacuumed: that takes up to {_mb(size)} in {shown(beside)} "
            f"({_mb(disk_usage(beside).free)} are free) and as much in {shown(temporary)} "
            f"({_mb(disk_usage(temporary).free)} are free): free some, or set SQLITE_TMPDIR to a folder with room"
        ) from error


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.2f} MB"


def check(url: str) -> list[Problem]:
    """Everything that is wrong with a store: the file, references, doubles, blobs; empty when it is whole.

    Finishes what a killed writer left in the log, where it may; a log that is another store's is said and left alone.
    ``StoreUnusable`` when it is locked, or no store of ours.
    """
    path = locate(url)
    refuse_irregular(path)
    if foreign := foreign_log(path):
        return [Problem("log", foreign)]
    sqlite.recover(path)
    sqlite.refuse_locked(path)
    try:
        schema.refuse_unreadable(path)
    except StoreUnusable as error:
        if not sqlite.is_damage(error):
            raise
        return [FileProblem(*flaw) for flaw in flaws(path)]
    return list(problems(path))


def in_log(url: str) -> str:
    """That a full disk keeps part of a store in its log, and what to do about it; empty where it does not."""
    return unfolded(locate(url))


def remedies(url: str, found: Sequence[Problem]) -> list[str]:
    """What can be done about what a check has found, a line each."""
    return list(remedy.remedies(locate(url), found))


def rebuild(url: str, summarize: Summarize, *, everything: bool = False, tell: Tell = _tell_nobody) -> int:
    """Derive summaries anew where they are of another version of the formulas, missing, or cannot be so; returns how many.

    A result that is damaged, or of which no summary follows that could be, stays as it is, and ``tell`` is given why.
    ``StoreUnusable`` where something else is wrong that summaries are derived from.
    """
    with _open(url) as store:
        with sqlite.translated(store.path, StoreUnusable):
            found = damage(store.path)
        for problem in found.results.values():
            tell(problem)

        def say(left: Damaged) -> None:
            tell(Problem(left.where, left.what))

        return rebuilding.rebuild(store.session, summarize, everything, found.results, say, found.underived)


def _open(url: str, *, grows: bool = True) -> Store:
    """Open a store that must exist."""
    path = locate(url)
    refuse_unwritable(path, grows=grows)
    if schema.look(path).state in ("missing", "empty"):
        raise StoreUnusable(f"no store at {shown(path)}: run `roofbench run` first, or name one with --store PATH")
    return Store.open(url, grows=grows)


def _started_before(connection: Connection, time: datetime | None) -> dict[int, str]:
    if time is None:
        return {}
    statement = select(_RUN.c.id, _RUN.c.name).where(_RUN.c.started_at < time)
    return {row.id: row.name for row in connection.execute(statement)}


def _remove(connection: Connection, store: Path, runs: dict[int, str]) -> None:
    connection.execute(delete(_RUN).where(_RUN.c.id.in_(runs)))  # what they own goes with them
    connection.execute(delete(_CASE).where(~select(_RESULT.c.id).where(_RESULT.c.case_id == _CASE.c.id).exists()))
    connection.execute(delete(_WORKLOAD).where(~select(_CASE.c.id).where(_CASE.c.workload_id == _WORKLOAD.c.id).exists()))
    for name in runs.values():
        lease.lock_path(store, name).unlink(missing_ok=True)
