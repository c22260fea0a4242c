"""Logs beside a store that belong to no file there: put where SQLite does not look, neither replayed nor deleted."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from suite.errors import StoreUnusable
from suite.store import lease
from suite.store.files import shown

LOGS = ("-wal", "-journal")  # what SQLite replays into whatever file has the name
# The last that is moved is the one that would be replayed: until then it tells who comes next that something is left to do.
COMPANIONS = ("-shm", "-journal", "-wal")
_LOCK = "orphans"  # in the place of a run's name in the name of a lease


def companion(path: Path, suffix: str) -> Path:
    """A file that SQLite keeps beside a database."""
    return Path(f"{path}{suffix}")


def kept_as(path: Path, suffixes: Iterable[str]) -> dict[Path, Path]:
    """Names beside the store for what is to be moved away, all with the same number, none of which is taken."""
    sources = [companion(path, suffix) for suffix in suffixes]
    number = 1
    while any(Path(f"{source}.orphan-{number}").exists() for source in sources):
        number += 1
    return {source: Path(f"{source}.orphan-{number}") for source in sources}


def set_aside(path: Path, suffixes: Iterable[str]) -> tuple[Path, ...]:
    """Move companions of a store to names that tell what they are; says where those that were there now lie."""
    moved = []
    for source, target in kept_as(path, suffixes).items():
        try:
            source.rename(target)
        except FileNotFoundError:
            continue
        moved.append(target)
    return tuple(moved)


def are_there(path: Path) -> bool:
    """Whether anything lies beside the name that SQLite would take for part of a new file of that name."""
    return any(companion(path, suffix).exists() for suffix in COMPANIONS)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Only one process at a time looks for orphans of a store: what the faster one has made since is no orphan."""
    try:
        held = lease.take(path, _LOCK)
    except lease.Held as holder:
        raise StoreUnusable(f"store {shown(path)} is being created by {holder}: start again in a second") from holder
    try:
        yield
    finally:
        held.release()


def set_orphans_aside(path: Path) -> tuple[Path, ...]:
    """Move what a store that is gone left beside its name; inside ``alone``.  Nothing where there is a file with content."""
    left = [suffix for suffix in COMPANIONS if companion(path, suffix).exists()]
    if not left or _has_content(path):  # asked in this order: what lay there before the file was cannot be of the file
        return ()
    try:
        return set_aside(path, left)
    except OSError as error:
        names = ", ".join(shown(companion(path, suffix)) for suffix in left)
        raise StoreUnusable(
            f"store {shown(path)} cannot be created: {names}, of a store that was there before, cannot be moved "
            f"({error.strerror}); move it, or choose another with store.url=PATH"
        ) from error


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False
