"""Everything that is particular to SQLite: how a file is opened, its pragmas, its errors as one line."""

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, NullPool, QueuePool, create_engine
from sqlalchemy.exc import DBAPIError, IntegrityError, StatementError

from suite.errors import RoofbenchError, StoreUnusable
from suite.store.columns import dump_json, load_json
from suite.store.damage import Damaged, line, one_line
from suite.store.files import on_network, shown

BUSY_TIMEOUT_S = 10.0  # a checkpoint or another run's commit takes milliseconds, a merge's chunk under a second
CLOSING_TIMEOUT_S = 0.2
LOOKING_TIMEOUT_S = 1.0

_JSON: dict[str, Any] = {"json_serializer": dump_json, "json_deserializer": load_json}

_EXPLANATIONS = {  # by the longest matching prefix of SQLite's name for the error
    "SQLITE_FULL": "no space left for store {path}: free some; what was committed before is intact",
    "SQLITE_IOERR": "the disk under store {path} failed ({text}): check its space, quota and file-size limit",
    "SQLITE_BUSY": "store {path} is locked by another process: wait until it ends, or stop it",
    "SQLITE_LOCKED": "store {path} is locked by another process: wait until it ends, or stop it",
    "SQLITE_READONLY": "store {path} is read-only: make it and its directory writable, or choose another with store.url=PATH",
    "SQLITE_READONLY_ROLLBACK": "store {path} was left in the middle of a write: `roofbench store check` repairs it",
    "SQLITE_READONLY_RECOVERY": "store {path} was left in the middle of a write: `roofbench store check` repairs it",
    "SQLITE_READONLY_DBMOVED": "store {path} was moved or removed while it was open: put it back, or start a new run",
    "SQLITE_CANTOPEN": "store {path} cannot be opened ({text}): it and its directory must be readable",
    "SQLITE_NOTADB": "{path} is not a database: choose another with store.url=PATH",
    "SQLITE_CORRUPT": "store {path} is damaged ({text}): `roofbench store check` says where",
    "SQLITE_TOOBIG": "a value is larger than store {path} can take (1 GB)",
    "SQLITE_ERROR": "{path} is no store of this version of roofbench ({text})",
}
_LOG_UNREAD = (
    "store {path} cannot be opened ({text}): to read the log beside it, a file has to be made there; make its directory "
    "writable, or copy the store and its log elsewhere"
)

# SQLite's own, and the driver's where SQLite quotes in its message what is damaged and no text.
FAILURES = (sqlite3.Error, UnicodeDecodeError)
_NO_TEXT = re.compile(r"Could not decode to UTF-8 column '(?P<column>[^']*)'")


def connect(path: Path, options: str, busy_timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
    """Open the file without any transaction of the driver's own; ``options`` are SQLite's, such as ``mode=ro``.

    ``StoreUnusable`` for a file that was emptied beside its log, which SQLite would delete, reading or writing.
    """
    if unfinished(path) and path.exists() and not _size(path):
        raise StoreUnusable(f"store {shown(path)} was emptied, and its log lies beside it: put it back, or start a new run")
    uri = f"file:{quote(os.fsencode(path))}?{options}"
    return sqlite3.connect(uri, uri=True, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False)


def writer_engine(path: Path, busy_timeout_s: float = BUSY_TIMEOUT_S, foreign_keys: bool = True) -> Engine:
    """An engine that keeps one connection; use it through ``writing``.

    The journal is a write-ahead log, but on a network file system, where that is unsafe, the classic one.
    """

    def open_file() -> sqlite3.Connection:
        connection = connect(path, "mode=rw", busy_timeout_s)
        try:
            _set_journal(connection, "DELETE" if on_network(path) else "WAL", busy_timeout_s)
            connection.execute(f"PRAGMA foreign_keys={'ON' if foreign_keys else 'OFF'}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    return create_engine("sqlite://", creator=open_file, poolclass=QueuePool, pool_size=1, max_overflow=0, **_JSON)


def reader_engine(path: Path, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Engine:
    """An engine that can only read, and keeps the file open no longer than a question takes."""

    def open_file() -> sqlite3.Connection:
        return connect(path, reading_options(path), busy_timeout_s)

    return create_engine("sqlite://", creator=open_file, poolclass=NullPool, **_JSON)


def checking_engine(path: Path) -> Engine:
    """An engine that can only read, and gives what is no UTF-8 text as ``NotText`` where another would give up."""

    def open_file() -> sqlite3.Connection:
        connection = connect(path, reading_options(path))
        connection.text_factory = _text_or_not
        return connection

    return create_engine("sqlite://", creator=open_file, poolclass=NullPool, **_JSON)


class NotText(bytes):
    """The content of a text column that cannot be decoded."""


def _text_or_not(content: bytes) -> str | NotText:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return NotText(content)


def examining_engine(path: Path) -> Engine:
    """An engine for a first look at a file that may be anything: changes nothing and leaves no file beside it."""
    return create_engine("sqlite://", creator=lambda: connect(path, _looking_options(path)), poolclass=NullPool, **_JSON)


def checkpoint(connection: Connection) -> None:
    """Fold the write-ahead log into the file as far as readers allow."""
    connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()  # runs outside a transaction: none was begun
    connection.rollback()


def at_rest(path: Path) -> None:
    """Fold the write-ahead log into the file and go back to the classic journal.

    A file at rest is whole without its neighbours, and is read without creating any.  While others have it open it stays
    as it is: the last one to close does this.
    """
    with suppress(*FAILURES), _closing(connect(path, "mode=rw", CLOSING_TIMEOUT_S)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode=DELETE")


def recover(path: Path) -> None:
    """Let SQLite finish or take back what a killed writer left in a log or journal, where the file may be written."""
    if unfinished(path):
        with suppress(*FAILURES), _closing(connect(path, "mode=rw", CLOSING_TIMEOUT_S)) as connection:
            connection.execute("PRAGMA schema_version").fetchall()


def refuse_locked(path: Path) -> None:
    """``StoreUnusable`` at once where another process keeps readers out, and not for a commit that is about to end."""
    try:
        with _closing(connect(path, reading_options(path), LOOKING_TIMEOUT_S)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except FAILURES as error:  # what else is wrong with it is found by who reads on
        if _name(error).startswith("SQLITE_BUSY"):
            raise StoreUnusable(explain(error, path)) from error


def temporary_folder() -> Path:
    """Where SQLite puts temporary files, by its own rule for Unix."""
    given = (os.environ.get(name) for name in ("SQLITE_TMPDIR", "TMPDIR"))
    folders = [*filter(None, given), "/var/tmp", "/usr/tmp", "/tmp"]
    return Path(next((each for each in folders if Path(each).is_dir() and os.access(each, os.W_OK | os.X_OK)), "."))


def lost_references(connection: Connection) -> int:
    """How many rows refer to one that is not there, inside the connection's transaction."""
    return len(connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall())


@contextmanager
def writing(connection: Connection, wait_on: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """A transaction that holds the write lock from its start: one that read first could not get it any more.

    ``wait_on`` is asked, each time that the lock was not to be had for as long as the connection waits, whether to try again.
    """
    with connection.begin():
        while True:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")  # not an event of the engine: those cost every statement a fifth
                break
            except DBAPIError as error:
                if not is_locked(error) or not wait_on():
                    raise
        yield


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that sees one state of the store throughout."""
    with engine.begin() as connection:
        connection.exec_driver_sql("BEGIN")
        yield connection


@contextmanager
def translated(path: Path, kind: type[RoofbenchError]) -> Iterator[None]:
    """Turn a database error into ``kind`` with one line that says what to do; ``ValueError`` for a value no column takes.

    What is ``Damaged`` makes the store ``StoreUnusable``, whatever it was wanted for.
    """
    try:
        yield
    except Damaged as found:
        raise StoreUnusable(line(path, found)) from found
    except IntegrityError:
        raise  # a broken constraint is for the caller to understand
    except DBAPIError as error:
        raise kind(explain(error.orig, path)) from error
    except StatementError as error:
        if isinstance(error.orig, UnicodeDecodeError):
            raise kind(explain(error.orig, path)) from error
        raise ValueError(str(error.orig)) from error
    except FAILURES as error:
        raise kind(explain(error, path)) from error


def explain(error: BaseException | None, path: Path) -> str:
    """One line on what is wrong with the store and what to do about it."""
    name = _name(error)
    known = max((prefix for prefix in _EXPLANATIONS if name.startswith(prefix)), key=len, default=None)
    template = _EXPLANATIONS[known] if known else "store {path} does not work: {text}"
    if known == "SQLITE_CANTOPEN" and unfinished(path):
        template = _LOG_UNREAD
    return template.format(path=shown(path), text=flaw(error))


def flaw(error: BaseException | None) -> str:
    """What SQLite says of an error, as one short line."""
    text = str(error)
    if isinstance(error, UnicodeDecodeError):  # SQLite's words around what the driver could not decode
        text = error.object.decode(errors="backslashreplace")
    if no_text := _NO_TEXT.search(text):
        return f"column {no_text['column']} holds what is no UTF-8 text"
    return one_line(text)


def is_damage(error: BaseException | None) -> bool:
    """Whether an error, or the database's error that it was made of, says that the file is not what was written."""
    return _name(_origin(error)).startswith("SQLITE_CORRUPT")


def is_locked(error: BaseException | None) -> bool:
    """Whether an error, or the database's error that it was made of, says that another process holds the store."""
    return _name(_origin(error)).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _origin(error: BaseException | None) -> BaseException | None:
    cause = error.__cause__ if isinstance(error, RoofbenchError) else error
    origin: BaseException | None = getattr(cause, "orig", cause)
    return origin


def _name(error: BaseException | None) -> str:
    """SQLite's name for an error; the driver's own errors about what it cannot read are damage."""
    if isinstance(error, UnicodeDecodeError) or (isinstance(error, sqlite3.Error) and _NO_TEXT.match(str(error))):
        return "SQLITE_CORRUPT"
    return getattr(error, "sqlite_errorname", "")


def back_up(path: Path, copy: Path) -> None:
    """Copy the last committed state of the file, log included, to a new file; a failed copy is removed.

    So is what a process left of this copy that was killed while it made it.
    """
    part = copy.with_name(copy.name + ".part")
    leftovers = (part, part.with_name(part.name + "-journal"))
    try:
        for each in leftovers:
            each.unlink(missing_ok=True)
        with _closing(connect(path, "mode=ro")) as source, _closing(connect(part, "mode=rwc")) as target:
            source.backup(target)
        part.rename(copy)
    finally:
        for each in leftovers:
            each.unlink(missing_ok=True)


def vacuum(path: Path) -> None:
    """Write the file anew without holes; ``StoreUnusable`` while others write it, or without the space."""
    with translated(path, StoreUnusable), _closing(connect(path, "mode=rw")) as connection:
        connection.execute("VACUUM")


@contextmanager
def _closing(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        yield connection
    finally:
        connection.close()


def _looking_options(path: Path) -> str:
    return "mode=ro" if unfinished(path) else "mode=ro&immutable=1"


def reading_options(path: Path) -> str:
    """How a file is opened to be read, which changes it in no way."""
    # Where nothing can be created beside the file (a published store on read-only media), nobody can be writing it either.
    return "mode=ro" if os.access(path.parent, os.W_OK) else _looking_options(path)


def unfinished(path: Path) -> bool:
    """Whether a log or a journal beside the file holds part of its content."""
    return any(_size(Path(f"{path}{suffix}")) for suffix in ("-wal", "-journal"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _set_journal(connection: sqlite3.Connection, mode: str, busy_timeout_s: float) -> None:
    # SQLite does not wait for a lock when it changes the journal; two runs that start together meet here.
    deadline = time.monotonic() + busy_timeout_s
    while True:
        try:
            connection.execute(f"PRAGMA journal_mode={mode}")
            break
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    connection.execute(f"PRAGMA synchronous={'NORMAL' if mode == 'WAL' else 'FULL'}")
