"""The schema's version: what a file holds, and how a new or older one is brought to this version."""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from sqlalchemy import Connection, column, inspect, select, table

from suite.errors import StoreUnusable
from suite.store import lease, orphans, sqlite
from suite.store.damage import one_line
from suite.store.files import shown
from suite.store.strange import Strange, strange_objects

MIGRATIONS = Path(__file__).parent / "migrations"
LINEAGE: tuple[str, ...] = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
)  # every revision, oldest first; a test holds it against the migrations

_one_at_a_time = threading.Lock()  # Alembic keeps what it works on in module globals

NAMED_AT_MOST = 3  # of what a store has and should not, in one line
SMALLEST_BYTES = 512  # one page of the smallest size; SQLite takes a file of one byte for an empty database

VERSION = table("alembic_version", column("version_num"))

State = Literal["missing", "empty", "foreign", "older", "current", "newer"]


class Found(NamedTuple):
    """What a file holds: its state against this version, and its revision where it has one."""

    state: State
    revision: str = ""
    tables: tuple[str, ...] = ()
    strange: tuple[Strange, ...] = ()
    revisions: tuple[str, ...] = ()  # more than one where the file contradicts itself


class Upgrade(NamedTuple):
    """A store brought to this version: from which revision to which, and the copy that was made before.

    ``orphans`` is where what a store that is gone had left beside the name of a new one lies now.
    """

    old: str
    new: str
    backup: Path | None
    orphans: tuple[Path, ...] = ()


def examine(connection: Connection) -> Found:
    """Say what the open database holds."""
    tables = tuple(sorted(inspect(connection).get_table_names()))
    if not tables:
        return Found("empty")
    revisions = connection.scalars(select(VERSION.c.version_num)).all() if "alembic_version" in tables else []
    if not revisions or not {"run", "result"} <= set(tables):
        return Found("foreign", tables=tables)
    named = tuple(sorted(map(str, revisions)))
    unknown = [each for each in named if each not in LINEAGE]
    revision = unknown[0] if unknown else max(named, key=LINEAGE.index)
    state: State = "newer" if unknown else "current" if revision == LINEAGE[-1] else "older"
    return Found(state, revision, tables, tuple(strange_objects(connection)), named)


def look(path: Path) -> Found:
    """Examine a file without changing anything; ``StoreUnusable`` where it is no database."""
    if not path.exists():
        return Found("missing")
    size = path.stat().st_size
    if size == 0:
        return Found("empty")  # not even looked at: to SQLite the log beside an empty file is rubbish, which it deletes
    if size < SMALLEST_BYTES:
        raise StoreUnusable(f"{shown(path)} is not a database: choose another with store.url=PATH")
    with sqlite.translated(path, StoreUnusable), sqlite.examining_engine(path).connect() as connection:
        return examine(connection)


def refuse_unreadable(path: Path) -> None:
    """``StoreUnusable`` unless the file holds a store of exactly this version."""
    found = look(path)
    if found.state == "current":
        return
    if found.state in ("missing", "empty"):
        raise StoreUnusable(f"no store at {shown(path)}: run `roofbench run` first, or name one with store.url=PATH")
    if found.state == "older":
        raise StoreUnusable(
            f"store {shown(path)} has the older schema {found.revision}, this roofbench reads {LINEAGE[-1]}: "
            "run `roofbench store upgrade` (it keeps a copy)"
        )
    _refuse(path, found)


def refuse_other(path: Path) -> None:
    """``StoreUnusable`` for what ``make_current`` leaves as it is.

    That is another program's database, a newer schema, no database, and a store that holds what would run with its writes.
    """
    found = look(path)
    if found.state in ("foreign", "newer"):
        _refuse(path, found)
    _refuse_tampered(path, found)


def make_current(path: Path, busy_timeout_s: float) -> Upgrade:
    """Create the store, or migrate an older one after copying it to ``<file>.bak-<revision>``.

    A log that lies beside the name of a store to be created is moved aside before.
    ``StoreUnusable`` for what ``refuse_other`` refuses; that is left as it was.
    """
    found = look(path)
    _refuse_tampered(path, found)
    moved: tuple[Path, ...] = ()
    if found.state == "missing":
        moved = _create(path, busy_timeout_s)
    elif found.state == "empty":
        moved = _fill(path, busy_timeout_s)
    elif found.state == "older":
        return _upgrade(path, busy_timeout_s)
    elif found.state != "current":
        _refuse(path, found)
    return Upgrade(found.revision, LINEAGE[-1], None, moved)


def _refuse_tampered(path: Path, found: Found) -> None:
    """``StoreUnusable`` for a store in which somebody else's trigger or view would run with what is written."""
    strange = [each for each in found.strange if each.kind != "table"]  # a virtual one runs nothing with what others are told
    if strange:
        named = ", ".join(f"{each.kind} {one_line(each.name)}" for each in strange[:NAMED_AT_MOST])
        more = f" and {len(strange) - NAMED_AT_MOST} more" if len(strange) > NAMED_AT_MOST else ""
        raise StoreUnusable(
            f"store {shown(path)} has {named}{more}, which no store of roofbench has, and is not written into: "
            "`roofbench store check` says how to remove that, or choose another with store.url=PATH"
        )
    if len(found.revisions) > 1:
        raise StoreUnusable(
            f"store {shown(path)} says that its schema is {' and '.join(found.revisions[:NAMED_AT_MOST])}: "
            "`roofbench store check` says how to mend that, or choose another with store.url=PATH"
        )


def _refuse(path: Path, found: Found) -> None:
    if found.state == "newer":
        raise StoreUnusable(
            f"store {shown(path)} has schema {found.revision}, newer than this roofbench's {LINEAGE[-1]}: "
            "upgrade roofbench, or choose another store with store.url=PATH"
        )
    names = ", ".join(found.tables[:4])
    raise StoreUnusable(f"{shown(path)} is another program's database (tables {names}): choose another with store.url=PATH")


def _fill(path: Path, busy_timeout_s: float) -> tuple[Path, ...]:
    """Make a store of a file without content."""
    with orphans.alone(path):
        moved = orphans.set_orphans_aside(path)
        try:
            with _migrating(path, busy_timeout_s) as connection:
                _migrate_if(connection, "empty")
        except StoreUnusable as error:
            if not moved:
                raise
            raise StoreUnusable(f"{error}; what lay beside it is kept as {' and '.join(map(shown, moved))}") from error
    return moved


def _create(path: Path, busy_timeout_s: float) -> tuple[Path, ...]:
    """Build the store under another name and link it into place: a half-made store is never seen, nor one overwritten."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        with sqlite.translated(path, StoreUnusable):
            sqlite.connect(draft, "mode=rwc").close()
        with _migrating(draft, busy_timeout_s, shown_as=path) as connection:
            _migrate_if(connection, "empty")
        sqlite.at_rest(draft)
        return _place(draft, path)
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{draft}{suffix}").unlink(missing_ok=True)


def remove_dead_drafts(path: Path) -> None:
    """Remove what processes left that were killed while they created this store; a living one's draft stays."""
    draft = re.compile(rf"\.{re.escape(path.name)}\.([1-9][0-9]*)\.[0-9a-f]{{8}}(-wal|-shm|-journal)?")
    with suppress(OSError):  # a folder that may be entered but not listed
        for each in path.parent.iterdir():
            found = draft.fullmatch(each.name)
            if found and not _alive(int(found[1])):
                each.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # another user's
    return True


def _place(draft: Path, path: Path) -> tuple[Path, ...]:
    """Give the store its name once nothing lies beside it that would be replayed into it; says what was moved."""
    if not orphans.are_there(path):
        _link(draft, path)
        return ()
    with orphans.alone(path):
        moved = orphans.set_orphans_aside(path)
        _link(draft, path)
    return moved


def _link(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        pass  # another run was faster: its store is as good
    except OSError:  # a file system without links
        if not path.exists():
            draft.rename(path)


def _upgrade(path: Path, busy_timeout_s: float) -> Upgrade:
    if writing := lease.live_runs(path):
        raise StoreUnusable(f"store {shown(path)} must be upgraded, but run {writing[0]} is being written: wait until it ends")
    with _migrating(path, busy_timeout_s) as connection:
        found = examine(connection)
        if found.state != "older":
            return Upgrade(found.revision, LINEAGE[-1], None)  # another process was faster
        backup = _free_name(path, found.revision)
        sqlite.back_up(path, backup)
        migrate(connection)
        if lost := sqlite.lost_references(connection):
            raise StoreUnusable(f"store {shown(path)} cannot be upgraded: {lost} rows would lose what they refer to")
    return Upgrade(found.revision, LINEAGE[-1], backup)


def _free_name(path: Path, revision: str) -> Path:
    backup = path.with_name(f"{path.name}.bak-{revision}")
    count = 1
    while backup.exists():
        count += 1
        backup = path.with_name(f"{path.name}.bak-{revision}-{count}")
    return backup


@contextmanager
def _migrating(path: Path, busy_timeout_s: float, shown_as: Path | None = None) -> Iterator[Connection]:
    # Rebuilding a table drops the old one, which with foreign keys on would take every row that refers to it along.
    engine = sqlite.writer_engine(path, busy_timeout_s, foreign_keys=False)
    try:
        with (
            sqlite.translated(shown_as or path, StoreUnusable),
            engine.connect() as connection,
            sqlite.writing(connection),
        ):
            yield connection
    finally:
        engine.dispose()


def _migrate_if(connection: Connection, state: State) -> None:
    """Run the migrations unless another process did so before this one got the lock."""
    if examine(connection).state == state:
        migrate(connection)


def migrate(connection: Connection, revision: str = "head") -> None:
    """Bring the schema to ``revision`` inside the connection's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    with _one_at_a_time:
        command.upgrade(config, revision)
