"""Who is writing a run: a lock on a file beside the store, which the kernel releases when its holder dies, however it dies.

A process id would not do: containers and nodes that share a store do not see each other's processes.
"""

import errno
import fcntl
import os
import socket
import time
from pathlib import Path

from suite.errors import StoreUnusable
from suite.label import write_label
from suite.paths import shown

_PATIENCE_S = 0.5  # a reader that looks whether the run is alive holds the lock for microseconds


class Held(Exception):
    """Another process is writing the run; the text says which."""


class Lease:
    """The right to write one run, until ``release`` or the end of the process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the right back and remove the file; harmless when repeated."""
        if self._descriptor < 0:
            return
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = -1


def take(store: Path, run: str) -> Lease:
    """Take the right to write a run; ``Held`` where a live process has it."""
    path = lock_path(store, run)
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        descriptor = _open(path)
        if not _locked(descriptor, path):
            holder = _read(descriptor)
            os.close(descriptor)
            if time.monotonic() > deadline:
                raise Held(holder)
            time.sleep(0.01)
        elif _is_at(path, descriptor):
            write_label(descriptor, f"process {os.getpid()} on {socket.gethostname()}")
            return Lease(path, descriptor)
        else:  # the holder removed the file between our opening and locking it
            os.close(descriptor)


def holder(store: Path, run: str) -> str | None:
    """Say which process is writing a run; ``None`` when no live one is."""
    path = lock_path(store, run)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _lock(descriptor, fcntl.LOCK_SH) else _read(descriptor)
    except OSError:
        return None  # no locks here: nobody could have taken one
    finally:
        os.close(descriptor)


def live_runs(store: Path) -> list[str]:
    """The runs of a store that live processes are writing."""
    prefix, suffix = f"{store.name}.", ".lock"
    names = [entry.name for entry in store.parent.iterdir() if entry.name.startswith(prefix) and entry.name.endswith(suffix)]
    runs = [name.removeprefix(prefix).removesuffix(suffix) for name in names]
    return sorted(run for run in runs if holder(store, run) is not None)


def lock_path(store: Path, run: str) -> Path:
    """Where the lock of one run lies."""
    return store.with_name(f"{store.name}.{run}.lock")


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreUnusable(f"{shown(path)} cannot be created ({error.strerror}): the run cannot be locked") from error


def _locked(descriptor: int, path: Path) -> bool:
    try:
        return _lock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        what = errno.errorcode.get(error.errno or 0, "?")
        raise StoreUnusable(f"the file system of {shown(path)} offers no locks ({what}): put the store on another") from error


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _read(descriptor: int) -> str:
    text = os.pread(descriptor, 200, 0).decode(errors="replace")
    return text if text and text.isprintable() else "another process"
