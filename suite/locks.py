"""One run at a time on a device: a lock file for each, held by ``flock`` and so gone with whoever held it."""

import contextlib
import fcntl
import json
import os
import pwd
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

from suite.backend import DeviceInfo
from suite.errors import DeviceBusy, UsageError
from suite.hardware.makers import is_cpu
from suite.label import write_label
from suite.paths import shown

DIRECTORY_VARIABLE = "ROOFBENCH_LOCK_DIR"
SHARED = (Path("/run/lock"), Path("/tmp"))  # writable by everyone, with the sticky bit, where they exist
# Workers share the lock and outlive a killed launcher by the moment the kernel needs to end them.
ORPHANS_S = 10.0
PAUSE_S = 0.05
TELL_EVERY_S = 30.0  # while waiting
MOST_PID = 2**22  # that Linux gives
STARTING = "that is starting"  # in place of a run's name until the store has given it one
LONGEST_NAME = 80  # characters of a run or user, of which more is made up


class Wait(NamedTuple):
    """How long to wait for devices that others hold, all of them together, and whom to tell of it."""

    limit_s: float = 0.0
    tell: Callable[[str], None] = lambda line: None


NO_WAIT = Wait()


class Holder(NamedTuple):
    """Who wrote a lock file last: the process and user of a run, and when its command began, ISO 8601 in UTC.

    ``None`` and empty for what the file does not say: it is being written, is an older version's, or had no room for it.
    """

    pid: int | None = None
    run: str = "unknown"
    user: str = ""
    since: str = ""

    @classmethod
    def read(cls, descriptor: int) -> Self:
        """What the file says; nobody where anything in it cannot be, as everyone may write there."""
        try:
            content: Any = json.loads(os.pread(descriptor, 4096, 0))
            known = {name: _plain(content[name]) for name in ("run", "user", "since") if name in content}
            if since := known.get("since"):
                datetime.fromisoformat(since)
            return cls(_process(content["pid"]), **known)
        except (ValueError, KeyError, TypeError, RecursionError):
            return cls()

    @property
    def is_alive(self) -> bool:
        if self.pid is None:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    @property
    def words(self) -> str:
        """``run 20261130-051200-x, process 123 of user ada, since 2026-11-30 05:12 UTC``."""
        if self.pid is None:
            return "a run that its lock file does not name"
        of = f" of user {self.user}" if self.user else ""
        since = f", since {self.since[:16].replace('T', ' ')} UTC" if self.since else ""
        return f"{self.named}, process {self.pid}{of}{since}"

    @property
    def named(self) -> str:
        """``run 20261130-051200-x``; before it has a name, ``a run that is starting``."""
        return f"a run {self.run}" if self.run == STARTING else f"run {self.run}"

    @property
    def advice(self) -> str:
        """What else can be done about it: nobody is told to stop what may be another's."""
        if self.pid is None:
            return ""
        if self.user and self.user != _user():
            return f"; it is {self.user}'s"
        return f"; if it is yours, 'kill {self.pid}' stops it"


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
        raise UsageError(f"lock directory {shown(path)} cannot be made ({error.strerror}); set {DIRECTORY_VARIABLE}") from None
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
        self._since = datetime.now(UTC).isoformat(timespec="seconds")

    def name(self, run: str) -> None:
        """Say in each lock file who holds it, for whoever is refused."""
        holder = {"pid": os.getpid(), "run": run, "user": _user(), "since": self._since}
        for descriptor in self.descriptors.values():
            write_label(descriptor, json.dumps(holder))


@contextmanager
def hold(devices: Sequence[DeviceInfo], run: str = STARTING, wait: Wait = NO_WAIT) -> Iterator[Locks]:
    """Lock every device for a run, waiting for those that are held.

    Raises ``DeviceBusy``, naming who holds the device, with none locked.
    """
    until = time.monotonic() + wait.limit_s
    with ExitStack() as stack:
        descriptors: dict[str, int] = {}
        # In one order for everybody: of two runs that wait for the same devices, neither holds what the other needs first.
        for device in sorted(devices, key=lambda device: device.uid):
            if device.uid not in descriptors:
                descriptors[device.uid] = _lock(device, wait, until)
                stack.callback(os.close, descriptors[device.uid])
        locks = Locks(descriptors)
        locks.name(run)
        yield locks


def _lock(device: DeviceInfo, wait: Wait, until: float) -> int:
    path = lock_directory() / f"{device.uid}.lock"
    try:
        descriptor = _open(path)
    except OSError as error:
        raise UsageError(f"lock file {shown(path)} cannot be opened ({error.strerror}); set {DIRECTORY_VARIABLE}") from None
    try:
        _acquire(descriptor, device, wait, until)
    except OSError as error:
        os.close(descriptor)
        raise UsageError(f"lock file {shown(path)} cannot be locked ({error.strerror}); set {DIRECTORY_VARIABLE}") from error
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _acquire(descriptor: int, device: DeviceInfo, wait: Wait, until: float) -> None:
    """Take the lock; wait for it until then, and without being asked to while its last owner's orphans are dying."""
    orphans_until = time.monotonic() + ORPHANS_S
    tell_at = time.monotonic()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder, now = Holder.read(descriptor), time.monotonic()
            if now > (until if holder.is_alive else max(until, orphans_until)):
                raise DeviceBusy(_busy(device, holder, wait)) from None
        if now >= tell_at and wait.limit_s:
            wait.tell(f"{_named(device)} is held by {holder.words}; waiting for it, {max(0, until - now):.0f} s at most")
            tell_at = now + TELL_EVERY_S
        time.sleep(PAUSE_S)


def _busy(device: DeviceInfo, holder: Holder, wait: Wait) -> str:
    if holder.pid is not None and not holder.is_alive:
        return (
            f"{_named(device)} is held by workers of {holder.named}, whose process {holder.pid} has ended; "
            f"end them{_or_another(device)}"
        )
    waited = f" after {wait.limit_s:g} s" if wait.limit_s else ""
    return (
        f"{_named(device)} is{' still' * bool(waited)} held{waited} by {holder.words}; wait for it with wait_s=SECONDS"
        f"{_or_another(device)}{holder.advice}"
    )


def _or_another(device: DeviceInfo) -> str:
    """Nothing of a CPU: all that a backend makes of it have one lock."""
    return "" if is_cpu(device) else ", or choose another with device="


def _named(device: DeviceInfo) -> str:
    return f"{device.backend} device {device.index} ({device.name})"


def _plain(text: object) -> str:
    """What anyone may have written, fit for a terminal; ``ValueError`` for what is no name."""
    if not isinstance(text, str) or len(text) > LONGEST_NAME:
        raise ValueError(f"{type(text).__name__} is no name")
    return "".join(character for character in text if character.isprintable())


def _process(number: object) -> int:
    """A process id; ``ValueError`` for what no process can have, which ``os.kill`` would take for a group of them."""
    if type(number) is not int or not 0 < number <= MOST_PID:
        raise ValueError("no process has such an id")
    return number


def _user() -> str:
    """Who runs this, by the name the system has; the number of one that it has none for, as in many containers."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
