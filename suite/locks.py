"""One run at a time on a device: a lock file for each, held by ``flock`` and so gone with whoever held it."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from suite.backend import DeviceInfo
from suite.errors import DeviceBusy, UsageError

DIRECTORY_VARIABLE = "ROOFBENCH_LOCK_DIR"
SHARED = (Path("/run/lock"), Path("/tmp"))  # writable by everyone, with the sticky bit, where they exist
# Workers share the lock and outlive a killed launcher by the moment the kernel needs to end them.
ORPHANS_S = 10.0
PAUSE_S = 0.05


def lock_directory() -> Path:
    """Where lock files are: ``$ROOFBENCH_LOCK_DIR``, else one directory for all users of this machine.

    A session's or a user's own directory would give each of them "the" lock of one device.  It is made when missing;
    ``UsageError`` when it cannot be used.
    """
    given = os.environ.get(DIRECTORY_VARIABLE)
    path = Path(given) if given else next((each for each in SHARED if os.access(each, os.W_OK)), SHARED[-1]) / "roofbench"
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not given:
            _open_to_all(path)
    except OSError as error:
        raise UsageError(f"lock directory {path} cannot be made ({error.strerror}); set {DIRECTORY_VARIABLE}") from None
    return path


def _open_to_all(path: Path) -> None:
    """Anyone may lock, nobody may remove another's file; whoever made the directory has seen to it."""
    if path.stat().st_uid == os.getuid():
        path.chmod(0o1777)


def _open(path: Path) -> int:
    """Open a lock file, or make one that other users can open too, whatever the umask is.

    Not in one call: in a directory that all may write to, Linux refuses to open another's file with ``O_CREAT``.
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, flags)
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:  # made by another run in this very moment
        return os.open(path, flags)
    os.fchmod(descriptor, 0o666)
    return descriptor


class Locks:
    """The locks a run holds; ``descriptors`` are their open files by device uid, to be shared with workers."""

    def __init__(self, descriptors: Mapping[str, int]) -> None:
        self.descriptors = descriptors

    def name(self, run: str) -> None:
        """Say in each lock file who holds it, for whoever is refused."""
        for descriptor in self.descriptors.values():
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps({"pid": os.getpid(), "run": run}).encode(), 0)


@contextmanager
def hold(devices: Sequence[DeviceInfo], run: str = "that is starting") -> Iterator[Locks]:
    """Lock every device for a run.  Raises ``DeviceBusy``, naming who holds the device, with none locked."""
    with ExitStack() as stack:
        descriptors: dict[str, int] = {}
        for device in sorted(devices, key=lambda device: device.uid):
            if device.uid not in descriptors:
                descriptors[device.uid] = _lock(device)
                stack.callback(os.close, descriptors[device.uid])
        locks = Locks(descriptors)
        locks.name(run)
        yield locks


def _lock(device: DeviceInfo) -> int:
    path = lock_directory() / f"{device.uid}.lock"
    try:
        descriptor = _open(path)
    except OSError as error:
        raise UsageError(f"lock file {path} cannot be opened ({error.strerror}); set {DIRECTORY_VARIABLE}") from None
    try:
        _acquire(descriptor, device)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _acquire(descriptor: int, device: DeviceInfo) -> None:
    """Take the lock; wait for it only while its last owner is dead, that is, while its orphans are dying."""
    until = time.monotonic() + ORPHANS_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            pid, run = _holder(descriptor)
            alive = pid is not None and _is_alive(pid)
            if alive or time.monotonic() > until:
                raise DeviceBusy(_busy(device, pid, run, alive)) from None
        time.sleep(PAUSE_S)


def _busy(device: DeviceInfo, pid: int | None, run: str, alive: bool) -> str:
    name = f"{device.backend} device {device.index} ({device.name})"
    if not alive:
        return f"{name} is held by workers of run {run}, whose process {pid} has ended; end them, or choose another device="
    return f"{name} is held by run {run}, process {pid}; wait for it, stop it with 'kill {pid}', or choose another device="


def _holder(descriptor: int) -> tuple[int | None, str]:
    """Who wrote the lock file last; unknown in the moment between locking and writing."""
    try:
        content = json.loads(os.pread(descriptor, 4096, 0))
        return int(content["pid"]), str(content["run"])
    except (ValueError, KeyError, TypeError):
        return None, "unknown"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
