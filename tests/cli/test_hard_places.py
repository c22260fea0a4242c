"""Commands where the system gives less than usual: no room for Hydra's notes, few open files, two signals at once."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import FAKE, TIME_LIMIT_S, roofbench
from tests.store.places import small_disk, unwritable


def refused_sweep(folder: Path, store: Path) -> str:
    """What a sweep says that ends before its first run."""
    said = roofbench(folder, "run", "-m", *FAKE, "note=a,b", f"store.url={store}")
    assert (said.status, said.out) == (2, "")
    assert not store.exists()
    assert len(said.err.splitlines()) == 1
    return said.err


def test_a_sweep_that_cannot_note_what_it_swept_is_refused_before_its_first_run(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    with unwritable(here):
        said = refused_sweep(here, tmp_path / "x.db")
    assert said.startswith("roofbench: -m notes what it swept under multirun/")
    assert "change to another folder, or give one with hydra.sweep.dir=PATH" in said


def test_a_file_in_the_place_of_those_notes_is_named(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    here.joinpath("multirun").touch()
    assert "where nothing can be written (Not a directory)" in refused_sweep(here, tmp_path / "x.db")


def test_a_full_disk_under_those_notes_is_named_and_nothing_stays(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "64k") as disk:
        disk.joinpath("ballast").write_bytes(bytes(2**15))
        assert "where nothing can be written (No space left on device)" in refused_sweep(disk, tmp_path / "x.db")
        assert [each.name for each in disk.iterdir()] == ["ballast"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*FAKE, "device=7", "note=a,b"], "device=7"),
        (["resume=latest,foo"], "no store at"),
        ([*FAKE, "hydra.job.chdir=true", "note=a,b"], "runs stay in the current folder"),
    ],
)
def test_a_refused_sweep_says_it_once_and_leaves_nothing(tmp_path: Path, arguments: list[str], message: str) -> None:
    said = roofbench(tmp_path, "run", "-m", *arguments)
    assert (said.status, len(said.err.splitlines())) == (2, 1)
    assert message in said.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("files", [6, 8])
def test_too_few_open_files_are_one_line(tmp_path: Path, files: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "suite.cli", "run", *FAKE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
    )
    assert done.returncode == 1
    assert done.stderr == "roofbench: too many open files; raise the limit, for instance with `ulimit -n 1024`\n"


TOGETHER = """
import os, signal
from suite.interrupts import leave, on_interrupt
both = (signal.SIGINT, signal.SIGTERM)
with on_interrupt(leave):
    signal.pthread_sigmask(signal.SIG_BLOCK, both)
    for number in both:
        os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, both)
"""


def test_of_two_signals_that_come_together_the_second_ends_the_process_without_a_word_from_python() -> None:
    done = subprocess.run([sys.executable, "-c", TOGETHER], capture_output=True, text=True, timeout=TIME_LIMIT_S)
    assert (done.returncode, done.stderr) == (-15, "")
