"""What of a store stays in its log because the disk has no room for it: no damage, but lost with the log."""

import shutil
from contextlib import closing
from pathlib import Path

from suite.store import sqlite
from suite.store.files import shown
from suite.store.orphans import companion


def unfolded(path: Path) -> str:
    """A line that says so, with the remedy; empty where the log has room to be folded into the file."""
    log = companion(path, "-wal")
    if not log.exists():
        return ""
    try:
        needed = _whole_bytes(path) - path.stat().st_size
    except (*sqlite.FAILURES, OSError):
        return ""  # what is wrong with it is found by who reads it
    free = shutil.disk_usage(path.parent).free
    if needed <= free:
        return ""
    return (
        f"the disk of store {shown(path)} is full, and part of it is in its log {shown(log)}: to take that in it needs "
        f"{needed} bytes more, and {free} are free; free some, and keep the log beside it until then"
    )


def _whole_bytes(path: Path) -> int:
    """The size that the file has once its log is folded in."""
    with closing(sqlite.connect(path, sqlite.reading_options(path), sqlite.LOOKING_TIMEOUT_S)) as connection:
        ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
        ((page_bytes,),) = connection.execute("PRAGMA page_size").fetchall()
    return int(pages) * int(page_bytes)
