"""The one connection through which a store is written, and its failures as one line each."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, Engine

from suite.errors import RoofbenchError, StoreUnusable, StoreWriteFailed
from suite.store import orphans, sqlite
from suite.store.files import shown

FIRST_BYTES = b"SQLite format 3\0"  # of every database file; one that was emptied in place has lost them


LOCKED_AT_MOST_S = 600.0  # a backup or a vacuum of a large store on a slow disk takes minutes
PAUSE_S = 0.05  # some locks are refused without waiting


class Patience(NamedTuple):
    """How long what was measured is kept while another process has the store locked, and whom to tell of it."""

    limit_s: float = 0.0
    tell: Callable[[str], None] = lambda line: None


NO_PATIENCE = Patience()


class Session:
    """Transactions on one store, one at a time, from whichever thread."""

    def __init__(self, path: Path, engine: Engine, patience: Patience = NO_PATIENCE) -> None:
        self.path = path
        self.patience = patience
        self.locked_out = False
        self._engine = engine
        # Opened before SQLite does and closed after it: closing any descriptor of the file drops every lock that this process
        # holds on it (POSIX), and whoever closed the store next would take itself for the last one and delete the log.
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with sqlite.translated(path, StoreUnusable):
                self._connection = engine.connect()  # kept: taking one from the pool costs as much as a small statement
        except BaseException:
            os.close(self._descriptor)
            raise
        self._one_at_a_time = threading.Lock()
        self._companions: dict[str, os.stat_result] = {}
        self._aside: tuple[Path, ...] = ()
        self.replaced = False  # for good: what this session wrote is then in no file of that name

    @contextmanager
    def transaction(self, failure: type[RoofbenchError] = StoreWriteFailed) -> Iterator[Connection]:
        """Everything inside is committed together at the end, or nothing is.

        Errors of the database become ``failure``; a broken constraint stays SQLAlchemy's ``IntegrityError``.
        """
        with self._one_at_a_time, sqlite.translated(self.path, failure):
            self._refuse_lost_file(failure)
            with sqlite.writing(self._connection, self._waiting() if failure is StoreWriteFailed else lambda: False):
                self._note_companions()
                yield self._connection

    def checkpoint(self) -> None:
        """Fold what was logged into the file as far as readers allow."""
        with self._one_at_a_time, sqlite.translated(self.path, StoreWriteFailed):
            sqlite.checkpoint(self._connection)

    def close(self) -> None:
        """Close the file and leave it whole and at rest when nobody else has it open."""
        if not self._is_there():
            self._set_log_aside()
        self._connection.close()
        self._engine.dispose()
        is_there = self._is_there()  # what lies there now may be another's
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if is_there:
            sqlite.at_rest(self.path)

    def _waiting(self) -> Callable[[], bool]:
        """Whether to go on waiting for a lock, asked until it was had or patience ends; from then on there is none."""
        since = time.monotonic()
        told = False

        def goes_on() -> bool:
            nonlocal told
            if time.monotonic() - since >= self.patience.limit_s:
                self.patience, self.locked_out = NO_PATIENCE, True
                return False
            if not told:
                told = True
                self.patience.tell(
                    f"store {shown(self.path)} is locked by another process: waiting for it, at most "
                    f"{self.patience.limit_s:g} s; what is measured meanwhile is kept"
                )
            time.sleep(PAUSE_S)
            return True

        return goes_on

    def _refuse_lost_file(self, failure: type[RoofbenchError]) -> None:
        # SQLite would go on writing into a file that has no name any more.
        if self._is_there() and not self.replaced:
            return
        self._set_log_aside()
        log = f" with its log, which is kept as {' and '.join(map(shown, self._aside))}," if self._aside else ","
        raise failure(
            f"store {shown(self.path)} was removed, replaced or overwritten while it was open: put it back{log} "
            "or start a new run"
        )

    def _note_companions(self) -> None:
        """Which files the log and its index are: SQLite has them open now, so that their inodes become nobody else's."""
        if not self._companions:
            for suffix in ("-shm", "-wal"):  # a journal is another file in every transaction
                with suppress(OSError):
                    self._companions[suffix] = orphans.companion(self.path, suffix).stat()

    def _set_log_aside(self) -> None:
        """Whoever opened what took the store's place would have the log replayed into it.

        Where nothing took it, the log stays: a store that is moved back needs it.
        """
        if not self.path.exists():
            return
        self.replaced = True
        with suppress(OSError):  # a folder that is read-only by now
            self._aside += orphans.set_aside(self.path, [suffix for suffix in self._companions if self._is_own(suffix)])

    def _is_own(self, suffix: str) -> bool:
        try:
            return os.path.samestat(self._companions[suffix], orphans.companion(self.path, suffix).stat())
        except OSError:
            return False

    def _is_there(self) -> bool:
        try:
            begins = os.pread(self._descriptor, len(FIRST_BYTES), 0)
            return begins == FIRST_BYTES and os.path.samestat(os.fstat(self._descriptor), self.path.stat())
        except OSError:
            return False
