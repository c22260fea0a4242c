"""A log beside a store that is another's: found before anything opens the file for writing, which would fold it in for good.

SQLite takes any log with the right name: nothing in it says which file it is of.
"""

import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from suite.errors import StoreUnusable
from suite.paths import for_shell
from suite.store import sqlite
from suite.store.files import shown
from suite.store.orphans import LOGS, companion, kept_as

_BROKEN = "SQLITE_NOTADB"  # beside what is damage
_UNREAD = ("SQLITE_READONLY_ROLLBACK", "SQLITE_READONLY_RECOVERY")  # only who may write reads past such a log


class _Seen(NamedTuple):
    """What a file holds in one way of looking at it: whether it is whole, and its runs' lasting ids by their row."""

    whole: bool
    runs: Mapping[int, str] = {}


def refuse_foreign_log(path: Path) -> None:
    """``StoreUnusable`` where the log beside a store is another's; changes nothing."""
    if text := foreign_log(path):
        raise StoreUnusable(text)


def foreign_log(path: Path) -> str:
    """What is wrong with the log beside a store, and what to do; empty where it may well be its own.

    It is another's where the bare file is whole, and with the log it is damaged or has other runs in the same rows.
    """
    if not _has_content(path) or not sqlite.unfinished(path):
        return ""
    both = _with_log(path)
    if both is None:
        return ""  # locked, or not to be read here: who opens it next says so
    bare = _seen(path, "mode=ro&immutable=1")  # that is without its log
    if bare is None or not bare.whole or (both.whole and not _is_another(bare, both)):
        return ""
    return _line(path, "damaged" if not both.whole else "another store")


def _line(path: Path, becomes: str) -> str:
    moves = kept_as(path, [suffix for suffix in LOGS if _has_content(companion(path, suffix))])
    names = " and ".join(shown(source) for source in moves)
    commands = " && ".join(f"mv -n {for_shell(str(source))} {for_shell(str(target))}" for source, target in moves.items())
    return (
        f"{names} is not the log of store {shown(path)}, which is whole without it and {becomes} with it: nothing was changed; "
        f"to go on with the store as it is without, move the log away ({commands})"
    )


def _is_another(bare: _Seen, both: _Seen) -> bool:
    """Rows with the same number and no run in common: a prune alone leaves the numbers of what it removed unused."""
    return bool(bare.runs.keys() & both.runs.keys()) and not set(bare.runs.values()) & set(both.runs.values())


def _with_log(path: Path) -> _Seen | None:
    try:
        return _look(path, "mode=ro")
    except sqlite.FAILURES as error:
        if _name(error) not in _UNREAD:
            return _judged(error)
    return _seen_in_a_copy(path)


def _seen_in_a_copy(path: Path) -> _Seen | None:
    """Nobody is writing, else the log could be read in place: a copy is of one moment."""
    folder = sqlite.temporary_folder()
    try:
        with TemporaryDirectory(dir=folder) as place:
            copy = Path(place) / "store.db"
            shutil.copyfile(path, copy)
            for suffix in LOGS:
                if _has_content(companion(path, suffix)):
                    shutil.copyfile(companion(path, suffix), companion(copy, suffix))
            return _seen(copy, "mode=rw")
    except OSError as error:
        needed = sum(companion(path, suffix).stat().st_size for suffix in ("", *LOGS) if _has_content(companion(path, suffix)))
        raise StoreUnusable(
            f"store {shown(path)} was left in the middle of a write, and a copy to look at what that left takes {needed} bytes "
            f"in {shown(Path(folder))}: {error.strerror}; set SQLITE_TMPDIR to a folder with room for it"
        ) from error


def _seen(path: Path, options: str) -> _Seen | None:
    try:
        return _look(path, options)
    except sqlite.FAILURES as error:
        return _judged(error)


def _look(path: Path, options: str) -> _Seen:
    with closing(sqlite.connect(path, options, sqlite.LOOKING_TIMEOUT_S)) as connection:
        if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
            return _Seen(False)
        if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
            return _Seen(False)
        has_runs = connection.execute("SELECT 1 FROM pragma_table_info('run') WHERE name = 'uid'").fetchone()
        return _Seen(True, dict(connection.execute("SELECT id, uid FROM run")) if has_runs else {})


def _judged(error: Exception) -> _Seen | None:
    return _Seen(False) if sqlite.is_damage(error) or _name(error).startswith(_BROKEN) else None


def _name(error: Exception) -> str:
    return getattr(error, "sqlite_errorname", "")


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False
