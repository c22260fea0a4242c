"""Standard output and error that are full, closed, or have no word for what is printed; a folder that is gone."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from suite.store.queries import Reader
from tests.cli.command import FAKE, TIME_LIMIT_S, Said, let_through, roofbench

ROOFBENCH = f"{sys.executable} -m suite.cli"
TINY = " ".join(FAKE)


def shell(folder: Path, line: str, **environment: str) -> Said:
    """Run a shell line in which ``$R`` is roofbench."""
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={**os.environ, "R": ROOFBENCH, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIME_LIMIT_S,
    )
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    ("arguments", "unbuffered"),
    [
        *((arguments, "") for arguments in ("--help", "--version", f"plan {TINY}", f"run {TINY}", "hardware")),
        # Written line by line what fails is the first of them, in each command alike.
        ("--help", "1"),
        *(
            pytest.param(each, "1", marks=pytest.mark.thorough)
            for each in ("--version", f"plan {TINY}", f"run {TINY}", "hardware")
        ),
    ],
)
def test_a_full_disk_under_the_output_is_one_line(arguments: str, unbuffered: str, tmp_path: Path) -> None:
    said = shell(tmp_path, f"$R {arguments} >/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert (said.status, said.out) == (1, "")
    has_begun = (
        arguments.startswith("run") and not unbuffered
    )  # else the line before the first case is lost, and with it the run
    *told, last = said.err.splitlines()
    assert last == "roofbench: the output cannot be written: No space left on device"
    assert [line.partition("=")[0] for line in told] == ["roofbench: to go on: roofbench run resume"] * has_begun


@pytest.mark.parametrize(
    "closed", [">&-", *(pytest.param(each, marks=pytest.mark.thorough) for each in ("2>&-", ">&- 2>&-")), "<&- >&- 2>&-"]
)
def test_closed_streams_are_as_good_as_the_null_device(closed: str, tmp_path: Path) -> None:
    assert shell(tmp_path, f"$R run {TINY} {closed}").status == 0
    kept = roofbench(tmp_path, "store", "check")
    assert (kept.status, kept.err) == (0, "")


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        pytest.param({"PYTHONIOENCODING": "ascii"}, marks=pytest.mark.thorough),
    ],
    ids=lambda environment: next(iter(environment)),
)
def test_what_an_encoding_lacks_is_written_without_it(environment: dict[str, str], tmp_path: Path) -> None:
    ran = shell(tmp_path, f"$R run {TINY}", **environment)
    assert (ran.status, ran.err) == (0, "")
    said = shell(tmp_path, "$R show", **environment).out
    assert re.search(r"\d [un]s ", said)
    assert "+/- of p50" in said
    assert "?" not in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("plan seed=x", 2),
        ("compare latest latest", 2),
        (f"run {TINY} job=nothing", 2),
        # The notes of a run and what `--fail-on` says are on standard error too, and stop nothing.
        pytest.param(f"run {TINY}", 0, marks=pytest.mark.thorough),
    ],
)
def test_a_full_disk_under_standard_error_changes_no_exit_status(arguments: str, status: int, tmp_path: Path) -> None:
    assert shell(tmp_path, f"$R {arguments} 2>/dev/full").status == status


def test_a_reader_of_standard_error_who_left_changes_no_exit_status(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "suite.cli", "plan", "seed=x"]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=writing, timeout=TIME_LIMIT_S, check=False)
    os.close(writing)
    assert done.returncode == 2


IN_A_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "suite.cli", *sys.argv[1:]])
"""


def test_a_terminal_that_is_closed_interrupts_the_run(tmp_path: Path) -> None:
    """What is printed after it has no reader any more, and is no failure of the run."""
    ours, theirs = pty.openpty()
    gate = tmp_path / "gate"
    arguments = ["run", *FAKE, "jobs.gemm.shapes=[64,128,256,512]", *let_through(6, gate)]
    child = subprocess.Popen(
        [sys.executable, "-c", IN_A_TERMINAL, *arguments],
        cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    while b"6/13" not in seen:
        seen += os.read(ours, 1000)
    os.close(ours)
    gate.touch()
    assert child.wait(TIME_LIMIT_S) == 130
    with Reader.open(str(tmp_path / "roofbench.db")) as reader:
        assert reader.resolve().status == "interrupted"


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_folder_that_is_gone_is_said(command: str, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    said = shell(tmp_path, f"cd gone; rmdir ../gone; exec $R {command} {TINY} 2>&1")
    last = said.out.splitlines()[-1]
    assert said.status == 2
    assert last == "roofbench: the current folder cannot be used (No such file or directory); change to one that is there"


def test_a_lock_directory_that_is_none_is_found_before_the_store_is_made(tmp_path: Path) -> None:
    said = shell(tmp_path, f"$R run {TINY}", ROOFBENCH_LOCK_DIR="/dev/null")
    assert said.status == 2
    assert said.err == "roofbench: lock directory /dev/null cannot be made (File exists); set ROOFBENCH_LOCK_DIR\n"
    assert list(tmp_path.iterdir()) == []
