"""One run a device: who is refused, what they are told, and that no lock outlives its holder."""

import contextlib
import json
import os
import pwd
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from suite import locks
from suite.backend import DeviceInfo
from suite.errors import DeviceBusy, UsageError
from suite.locks import Wait, hold, lock_directory
from tests.patience import PATIENCE_S
from tests.processes.bench import ROOT
from tests.store.places import small_disk

A, B = (DeviceInfo("fake", index, "Fake", f"uid{index}", 2**30) for index in (0, 1))

HOLDER = """
import os, sys, time
from suite.backend import DeviceInfo
from suite.locks import hold
with hold([DeviceInfo("fake", 0, "Fake", "uid0", 1)], "run-of-another") as held:
    orphan = os.fork() if "orphan" in sys.argv else None
    if orphan != 0:
        print("held", *[orphan] * (orphan is not None), flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFBENCH_LOCK_DIR", str(tmp_path / "locks"))


def holder() -> subprocess.Popen[str]:
    child = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def orphaned() -> tuple[subprocess.Popen[str], int]:
    """A holder that was killed, and the process that it left, which has the lock open."""
    child = subprocess.Popen([sys.executable, "-c", HOLDER, "orphan"], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert child.stdout is not None
    _, orphan = child.stdout.readline().split()
    child.kill()
    child.wait()
    return child, int(orphan)


def test_a_held_device_is_refused_with_holder_run_and_remedy() -> None:
    child = holder()
    try:
        with pytest.raises(DeviceBusy) as refused, hold([A], "mine"):
            pass
    finally:
        child.kill()
        child.communicate()
    message = str(refused.value)
    assert f"run run-of-another, process {child.pid} of user {pwd.getpwuid(os.getuid()).pw_name}, since 2" in message
    assert "wait_s=" in message
    assert f"'kill {child.pid}'" in message
    assert "if it is yours" in message
    assert "device=" in message
    assert refused.value.exit_status == 1


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (
            {"run": "r1", "user": "ada", "since": "2026-11-30T05:12:00+00:00"},
            "is held by run r1, process {pid} of user ada, since 2026-11-30 05:12 UTC; wait for it with wait_s=SECONDS, or "
            "choose another with device=; it is ada's",
        ),
        (
            {"run": "r1"},
            "is held by run r1, process {pid}; wait for it with wait_s=SECONDS, or choose another with device=; "
            "if it is yours, 'kill {pid}' stops it",
        ),
        ({"run": "that is starting"}, "is held by a run that is starting, process {pid}; wait for it"),
        ({"user": "\033[31mada\n"}, "is held by run unknown, process {pid} of user [31mada; wait for it"),
    ],
    ids=["another's", "an older version's", "without a name yet", "made up"],
)
def test_whose_run_it_is_and_since_when_is_said_and_nobody_is_told_to_stop_another_s(
    written: dict[str, str], told: str
) -> None:
    child = holder()
    try:
        (lock_directory() / "uid0.lock").write_text(json.dumps({"pid": child.pid, **written}))
        with pytest.raises(DeviceBusy) as refused, hold([A], "mine"):
            pass
    finally:
        child.kill()
        child.communicate()
    assert f"fake device 0 (Fake) {told.format(pid=child.pid)}" in str(refused.value)


def test_nobody_is_sent_to_another_of_devices_that_are_all_one_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA may be made to see several, and each is the whole processor: they have one lock."""
    monkeypatch.setattr(locks, "ORPHANS_S", 0.0)
    first, second = (DeviceInfo("xla", index, "EPYC", "uid0", 1, details={"platform": "cpu"}) for index in (0, 1))
    with hold([first], "one"), pytest.raises(DeviceBusy) as refused, hold([second], "two"):
        pass
    message = str(refused.value)
    assert message.startswith("xla device 1 (EPYC) is held by run one, process ")
    assert "; wait for it with wait_s=SECONDS; if it is yours, 'kill " in message
    assert "device=" not in message


def test_a_device_that_is_held_is_waited_for_as_long_as_was_asked_and_the_wait_is_told() -> None:
    child, lines = holder(), list[str]()

    def tell(line: str) -> None:
        lines.append(line)
        child.kill()

    with hold([A], "mine", Wait(60.0, tell)) as held:
        assert held.descriptors["uid0"] > 0
    child.communicate()
    assert len(lines) == 1
    assert lines[0].startswith(f"fake device 0 (Fake) is held by run run-of-another, process {child.pid} of user ")
    assert re.search(r"; waiting for it, (60|59) s at most$", lines[0])


def test_a_wait_ends_refused_with_none_locked() -> None:
    lines: list[str] = []
    with hold([B], "one"):
        refused = pytest.raises(DeviceBusy, match=r"fake device 1 \(Fake\) is still held after 0\.2 s by run one, ")
        with refused, hold([A, B], "two", Wait(0.2, lines.append)):
            pass
        assert len(lines) == 1
        with hold([A], "three"):
            pass


def test_a_long_wait_is_told_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "TELL_EVERY_S", 0.05)
    lines: list[str] = []
    with hold([A], "one"), pytest.raises(DeviceBusy), hold([A], "two", Wait(0.4, lines.append)):
        pass
    assert len(lines) > 1


def test_nobody_is_told_of_a_wait_that_was_not_asked_for() -> None:
    lines: list[str] = []
    with hold([A], "one"), pytest.raises(DeviceBusy), hold([A], "two", Wait(0.0, lines.append)):
        pass
    assert lines == []


def test_a_lock_ends_with_its_holder_however_that_ends() -> None:
    child = holder()
    child.kill()
    child.communicate()
    began = time.monotonic()
    with hold([A], "mine"):
        assert time.monotonic() - began < locks.ORPHANS_S


def test_the_orphans_of_a_dead_holder_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "ORPHANS_S", PATIENCE_S)
    child, orphan = orphaned()
    sleep, left = time.sleep, [orphan]

    def pause(seconds: float) -> None:
        while left:
            os.kill(left.pop(), signal.SIGKILL)
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", pause)
    with hold([A], "mine"):
        assert not left, "it was waited for"
    child.communicate()


def test_orphans_that_stay_are_named_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "ORPHANS_S", 0.2)
    child, orphan = orphaned()
    with pytest.raises(DeviceBusy, match=f"workers of run run-of-another, whose process {child.pid} has ended"), hold([A], ""):
        pass
    os.kill(orphan, signal.SIGKILL)
    child.communicate()


def test_a_refusal_leaves_the_other_devices_free() -> None:
    with hold([B], "one"):
        with pytest.raises(DeviceBusy), hold([A, B], "two"):
            pass
        with hold([A], "three"):
            pass


def test_several_slots_of_one_device_share_its_lock() -> None:
    with hold([A, A, B], "run") as held:
        assert set(held.descriptors) == {"uid0", "uid1"}


def test_the_holder_can_say_later_which_run_it_is() -> None:
    with hold([A]) as held:
        held.name("20261129T120000-abcd")
        with pytest.raises(DeviceBusy, match="run 20261129T120000-abcd"), hold([A]):
            pass


IMPLAUSIBLE = {
    "nothing": b"",
    "half a text": b'{"pid": 1',
    "an infinite process": b'{"pid": 1e999}',
    "a process beyond every number of the system": b'{"pid": 99999999999999999999}',
    "a process beyond those of Linux": b'{"pid": 4194305}',
    "a group of processes": b'{"pid": -1}',
    "every process": b'{"pid": 0}',
    "half a process": b'{"pid": 1.5}',
    "a truth": b'{"pid": true}',
    "a text without end": b"[" * 4000,
    "a list": b"[1, 2]",
    "a list for a user": b'{"pid": 1, "user": ["ada"]}',
    "an object for a user": b'{"pid": 1, "user": {"name": "ada"}}',
    "a page for a run": b'{"pid": 1, "run": "' + b"x" * 1000 + b'"}',
    "a number for a time": b'{"pid": 1, "since": 12}',
    "a word for a time": b'{"pid": 1, "since": "yesterday"}',
}


@pytest.mark.parametrize("content", IMPLAUSIBLE.values(), ids=IMPLAUSIBLE)
def test_what_no_holder_can_have_written_names_nobody(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is everyone's to write, and is read by everyone whom the lock refuses."""
    monkeypatch.setattr(locks, "ORPHANS_S", 0.0)
    with hold([A], "one"):
        (lock_directory() / "uid0.lock").write_bytes(content)
        with pytest.raises(DeviceBusy) as refused, hold([A], "two"):
            pass
    assert str(refused.value) == (
        "fake device 0 (Fake) is held by a run that its lock file does not name; wait for it with wait_s=SECONDS, "
        "or choose another with device="
    )


def test_a_full_disk_under_the_lock_files_costs_the_label_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "ORPHANS_S", 0.0)
    with small_disk(tmp_path / "small", "16k") as disk:
        monkeypatch.setenv("ROOFBENCH_LOCK_DIR", str(disk))
        (disk / "uid0.lock").touch()
        with contextlib.suppress(OSError):
            (disk / "ballast").write_bytes(b"x" * 2**16)
        with hold([A], "mine") as held:
            held.name("20261129T120000-abcd")
            with pytest.raises(DeviceBusy, match="does not name"), hold([A], "another"):
                pass
            (disk / "ballast").unlink()
            held.name("20261129T120000-abcd")
            (disk / "ballast").write_bytes(b"x" * os.statvfs(disk).f_bavail * 4096)
            held.name("20261129T120000-efgh")
            with pytest.raises(DeviceBusy, match="run 20261129T120000-efgh, process "), hold([A], "another"):
                pass


NO_ROOM = """
import os, resource
from suite.label import write_label
resource.setrlimit(resource.RLIMIT_FSIZE, (4, 4))
descriptor = os.open("label", os.O_RDWR | os.O_CREAT)
os.pwrite(descriptor, b"old", 0)
write_label(descriptor, "new, and longer")
"""


def test_a_label_without_room_leaves_no_other(tmp_path: Path) -> None:
    """By a limit on the size of files, for which everyone has the rights."""
    subprocess.run([sys.executable, "-c", NO_ROOM], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    assert (tmp_path / "label").read_bytes() == b""


@pytest.mark.parametrize("content", [b"", b"{", b"null", b'{"pid": "x"}', b"\xff\xfe", b'{"pid": 1}'])
def test_a_lock_file_with_anything_in_it_is_no_obstacle(content: bytes) -> None:
    path = lock_directory() / "uid0.lock"
    path.write_bytes(content)
    with hold([A], "mine") as held:
        assert f'"pid": {os.getpid()}' in path.read_text()
        assert held.descriptors["uid0"] > 0


def test_all_users_and_sessions_of_a_machine_share_one_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A directory of the session's own would give two runs of one device a lock each."""
    monkeypatch.delenv("ROOFBENCH_LOCK_DIR")
    monkeypatch.setattr(locks, "SHARED", (tmp_path / "missing", tmp_path))
    for session in ("ssh", "slurm"):
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / session))
        monkeypatch.setenv("TMPDIR", str(tmp_path / session))
        assert lock_directory() == tmp_path / "roofbench"
    assert lock_directory().stat().st_mode & 0o7777 == 0o1777
    before = os.umask(0o077)
    try:
        with hold([A]):
            assert (tmp_path / "roofbench" / "uid0.lock").stat().st_mode & 0o777 == 0o666
    finally:
        os.umask(before)


def test_an_unusable_directory_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ROOFBENCH_LOCK_DIR", str(tmp_path / "file"))
    with pytest.raises(UsageError, match=re.escape(str(tmp_path / "file"))), hold([A]):
        pass


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("content")
    (lock_directory() / "uid0.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(UsageError, match=r"uid0\.lock"), hold([A]):
        pass
    assert (tmp_path / "precious").read_text() == "content"
