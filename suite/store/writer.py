"""Opening a store for writing, and starting or continuing a run in it."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import update
from sqlalchemy.exc import IntegrityError

from suite.errors import StoreUnusable, UsageError
from suite.rows import DeviceRow
from suite.selftest.record import Selftest
from suite.store import compiled as compiled_cells
from suite.store import lease, schema, selftests, sqlite, standing, tables
from suite.store.catalogue import Facts
from suite.store.damage import converting, json_object
from suite.store.files import locate, refuse_unwritable, shown
from suite.store.foreign import refuse_foreign_log
from suite.store.prepared import new_id, prepared_insert
from suite.store.recorder import Record, RunWriter
from suite.store.runs import find_run, new_name
from suite.store.session import NO_PATIENCE, Patience, Session
from suite.targets.record import Compiled

__all__ = ["Record", "RunStart", "RunWriter", "Store"]

_RUN = tables.table_of(tables.Run)
_ADD_RUN = prepared_insert(_RUN)
_NAMES_TRIED = 8


@dataclass(frozen=True, slots=True)
class RunStart:
    """Everything that is known of a run before anything is measured.

    ``config`` is the resolved configuration, ``overrides`` what the user gave of it; ``planned`` counts cases over all
    slots.  ``commit`` and ``dirty`` are ``None`` outside a checkout.
    """

    experiment: str
    config: dict[str, Any]
    argv: Sequence[str]
    overrides: Sequence[str]
    note: str
    version: str
    commit: str | None
    dirty: bool | None
    planned: int
    devices: Sequence[DeviceRow]
    environment: Facts = field(default_factory=dict)


def refuse_unusable(url: str) -> None:
    """``StoreUnusable`` where ``Store.open`` could not but fail; looks only, and creates, upgrades and changes nothing."""
    path = locate(url)
    refuse_unwritable(path)
    refuse_foreign_log(path)
    schema.refuse_other(path)


class Store:
    """A store open for writing.  Only the parent process of a sweep opens one."""

    def __init__(self, session: Session, migrated: schema.Upgrade) -> None:
        self.session = session
        self.migrated = migrated

    @classmethod
    def open(
        cls, url: str, *, busy_timeout_s: float = sqlite.BUSY_TIMEOUT_S, grows: bool = True, patience: Patience = NO_PATIENCE
    ) -> Self:
        """Open the store at a path or an ``sqlite:///`` URL, creating or migrating it (an older one is copied first).

        ``StoreUnusable``, with nothing created or changed, when the path is a directory, cannot be written, is no store,
        has a newer schema, is full, has another store's log beside it, or stays locked for ``busy_timeout_s`` seconds.  One
        that only shrinks (``grows``) may be full.  ``patience`` is what its runs have with a lock that another process takes
        later.
        """
        path = locate(url)
        refuse_unwritable(path, grows=grows)
        refuse_foreign_log(path)
        schema.remove_dead_drafts(path)
        migrated = schema.make_current(path, busy_timeout_s)
        engine = sqlite.writer_engine(path, busy_timeout_s)
        session = Session(path, engine, patience)
        try:
            with session.transaction(StoreUnusable):
                pass  # takes the write lock once: a locked or read-only file shows here, not after the first case
        except StoreUnusable:
            engine.dispose()
            raise
        return cls(session, migrated)

    @property
    def path(self) -> Path:
        """The file, absolute."""
        return self.session.path

    def start_run(self, start: RunStart) -> RunWriter:
        """Store a new run with its configuration, devices and environment; ``StoreUnusable`` when that fails."""
        for _ in range(_NAMES_TRIED):
            started_at = datetime.now(UTC)
            name = new_name(started_at)
            try:
                return self._write(name, start, started_at)
            except IntegrityError:
                continue  # another run of the same second drew the same characters
        raise StoreUnusable(f"store {shown(self.path)} has a run for every name tried: start again in a second")

    def resume_run(self, run: str) -> RunWriter:
        """Continue a run, given by its id, the beginning of one, or ``latest``.

        Its results go on under the devices and environment it had until others are registered.  ``UsageError`` when there
        is no such run, or while a live process is writing it.
        """
        with self.session.transaction(StoreUnusable) as connection:
            found = find_run(connection, self.path, run)
            with converting(f"run {found.id}"):
                json_object(found.config, "config")
        with self._leased(found.name) as held:
            values = {"status": "running", "finished_at": None, "reason": ""}
            with self.session.transaction(StoreUnusable) as connection:
                if not connection.execute(update(_RUN).where(_RUN.c.id == found.id).values(values)).rowcount:
                    raise UsageError(f"run {found.name} has just been removed from store {shown(self.path)}")
                before = standing.latest(connection, found.id)
        content = {name: value for name, value in found._mapping.items() if name != "id"}
        return RunWriter(self.session, held, found.id, content | values, before)

    def record_selftest(self, selftest: Selftest) -> None:
        """Commit what a selftest found; storing the same again changes nothing.

        Its runs are in this store: ``ValueError`` where one is not, or for a number that is none.
        """
        with self.session.transaction() as connection:
            selftests.add(connection, selftest)

    def record_compiled(self, compiled: Compiled) -> None:
        """Commit what a program became on a target, in place of what it became by the same sources and tools before."""
        with self.session.transaction() as connection:
            compiled_cells.put(connection, compiled)

    def _write(self, name: str, start: RunStart, started_at: datetime) -> RunWriter:
        row = {
            **{each.name: getattr(start, each.name) for each in fields(start) if each.name not in ("devices", "environment")},
            "uid": secrets.token_hex(16),
            "name": name,
            "status": "running",
            "reason": "",
            "started_at": started_at,
            "finished_at": None,
            "argv": list(start.argv),
            "overrides": list(start.overrides),
        }
        with self._leased(name) as held, self.session.transaction(StoreUnusable) as connection:
            run_id = new_id(_ADD_RUN.run(connection, row))
            begun = standing.add(connection, run_id, start.devices, start.environment)
        return RunWriter(self.session, held, run_id, row, begun)

    @contextmanager
    def _leased(self, run: str) -> Iterator[lease.Lease]:
        """The right to write a run, given back when starting or resuming it fails."""
        try:
            held = lease.take(self.path, run)
        except lease.Held as holder:
            raise UsageError(f"run {run} is being written by {holder}: wait until it ends, or stop it") from holder
        try:
            yield held
        except BaseException:
            held.release()
            raise

    def close(self) -> None:
        """Close the file; everything committed is in it."""
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
