"""Killed, interrupted and terminated runs: nothing finished is lost or doubled, and no process is left behind."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from suite.launcher import launch
from suite.launcher.reaper import MARK
from suite.rows import ResultRow
from tests.patience import PATIENCE_S, until
from tests.processes.bench import alive, gone_within
from tests.processes.driver import Program, reader


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    started: list[Program] = []
    yield started
    for program in started:
        program.kill()


def of_run(pid: int) -> list[int]:
    """Everything a launcher with this process id started, directly or not, whoever its parent is now."""
    entry = f"{MARK}={pid}-".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if any(variable.startswith(entry) for variable in path.read_bytes().split(b"\0")):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def reaper_of(pid: int) -> int:
    """The process that cleans up after a launcher with this process id."""
    mark = f"--mark\0{pid}-".encode()
    (found,) = (path for path in Path("/proc").glob("[0-9]*/cmdline") if mark in _content(path))
    return int(found.parent.name)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def rows_of(store: Path) -> list[ResultRow]:
    with reader(store) as read:
        return read.results()


@pytest.mark.parametrize("kills", [8, pytest.param(20, marks=pytest.mark.thorough)])
def test_kills_at_random_moments_lose_nothing_and_double_nothing(tmp_path: Path, programs: list[Program], kills: int) -> None:
    store = tmp_path / "store.db"
    spec = {"shapes": [f"{m}x8x8" for m in range(1, 101)], "options": {"sleep_s": 0.03}}
    first = Program(store, **spec)
    programs.append(first)
    first.wait_for("started")
    draw = random.Random(20261129)
    finished: dict[str, int] = {}
    orphans = 0
    for _ in range(kills):
        program = programs[-1]
        time.sleep(draw.uniform(0.0, 0.8))  # while it loads, starts its worker, measures or commits
        workers = of_run(program.pid)
        assert program.process.is_alive()
        program.kill()
        assert all(gone_within(pid, PATIENCE_S) for pid in workers)
        orphans += len(workers)
        now = {row.case_key: row.result_id for row in rows_of(store)}
        assert finished.items() <= now.items()
        finished = now
        programs.append(Program(store, **spec, resume="latest"))
    assert programs[-1].end() == 0
    assert orphans
    rows = rows_of(store)
    keys = [row.case_key for row in rows]
    assert len(keys) == len(set(keys)) == 105
    assert len({row.run for row in rows}) == 1
    assert {row.attempt for row in rows} == {1}
    assert finished.items() <= {row.case_key: row.result_id for row in rows}.items()
    connection = sqlite3.connect(store)
    assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    assert connection.execute("select count(*) from result").fetchone() == (len(keys),)
    connection.close()


def test_children_of_workers_die_with_a_killed_parent_in_any_session(tmp_path: Path, programs: list[Program]) -> None:
    pids = tmp_path / "pids"
    program = Program(tmp_path / "store.db", shapes=["1x8x8"], options={"faults": {"1x8x8": f"hang_with_children:{pids}"}})
    programs.append(program)
    until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    everyone = {*of_run(program.pid), *(int(pid) for pid in pids.read_text().split())}
    assert len(everyone) == 3
    os.kill(program.pid, signal.SIGKILL)
    assert all(gone_within(pid, PATIENCE_S) for pid in everyone)


def test_a_reaper_that_was_stopped_does_not_hold_a_finished_run(tmp_path: Path, programs: list[Program]) -> None:
    program = Program(tmp_path / "store.db", shapes=["1x8x8"], options={"sleep_s": 0.1})
    programs.append(program)
    program.wait_for("started")
    reaper = reaper_of(program.pid)
    os.kill(reaper, signal.SIGSTOP)
    assert program.end() == 0
    assert not alive(reaper)


def test_a_reaper_that_was_stopped_does_its_work_once_its_run_is_killed(tmp_path: Path, programs: list[Program]) -> None:
    pids = tmp_path / "pids"
    program = Program(tmp_path / "store.db", shapes=["1x8x8"], options={"faults": {"1x8x8": f"hang_with_children:{pids}"}})
    programs.append(program)
    until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    reaper = reaper_of(program.pid)
    everyone = {reaper, *of_run(program.pid), *(int(pid) for pid in pids.read_text().split())}
    os.kill(reaper, signal.SIGSTOP)
    os.kill(program.pid, signal.SIGKILL)
    assert all(gone_within(pid, PATIENCE_S) for pid in everyone)


def test_a_reaper_that_does_not_end_is_killed_and_its_work_done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deaf = tmp_path / "deaf.py"
    deaf.write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr(launch, "REAPER_S", 0.2)
    monkeypatch.setattr(launch.reaper, "__file__", str(deaf))
    mark = f"{os.getpid()}-deaf"
    left = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], env={MARK: mark})
    until(lambda: left.pid in launch.reaper.marked(mark))
    reaper = launch._Reaper(mark)
    reaper.close()
    assert reaper._popen.returncode == left.wait() == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_an_interrupted_run_says_so_drops_its_case_and_can_go_on(
    tmp_path: Path, programs: list[Program], number: signal.Signals
) -> None:
    store = tmp_path / "store.db"
    shapes = [f"{m}x8x8" for m in range(1, 4)]
    program = Program(store, shapes=shapes, options={"faults": {"2x8x8": "hang"}})
    programs.append(program)
    program.wait_for("phase compile 2")
    workers = of_run(program.pid)
    os.kill(program.pid, number)
    assert program.end() == 130
    assert not any(alive(pid) for pid in workers)
    with reader(store) as read:
        run = read.resolve()
    assert (run.status, run.finished) == ("interrupted", 6)
    again = Program(store, shapes=shapes, options={}, resume="latest")
    programs.append(again)
    assert again.end() == 0
    rows = rows_of(store)
    assert len(rows) == 8
    assert {row.outcome for row in rows} == {"ok"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_an_interrupt_while_workers_leave_is_no_end_like_any_other(
    tmp_path: Path, programs: list[Program], number: signal.Signals
) -> None:
    """Every case is stored, and whatever would follow this run must not: a framework takes seconds to leave."""
    store, leaving = tmp_path / "store.db", tmp_path / "leaving"
    program = Program(store, shapes=["1x8x8"], target="tests.processes.strange:Leaving", options={"leaving": str(leaving)})
    programs.append(program)
    until(lambda: leaving.exists() and bool(leaving.read_text()))
    os.kill(program.pid, number)
    assert program.end() == 130
    assert not alive(int(leaving.read_text()))
    with reader(store) as read:
        run = read.resolve()
    assert (run.status, run.finished, run.planned) == ("complete", 6, 6)


def test_an_interrupt_while_workers_start_leaves_nothing_and_stores_no_run(tmp_path: Path, programs: list[Program]) -> None:
    store = tmp_path / "store.db"
    program = Program(store, shapes=["1x8x8"], options={"start": "hang"})
    programs.append(program)
    until(lambda: bool(of_run(program.pid)))
    workers = of_run(program.pid)
    os.kill(program.pid, signal.SIGINT)
    assert program.end() == 130
    assert not any(alive(pid) for pid in workers)
    with reader(store) as read:
        assert read.runs() == []


def test_a_second_run_on_a_held_device_is_told_who_holds_it(tmp_path: Path, programs: list[Program]) -> None:
    first = Program(tmp_path / "a.db", shapes=["1x8x8"], options={"faults": {"1x8x8": "hang"}})
    programs.append(first)
    first.wait_for("phase compile 1")
    second = Program(tmp_path / "b.db", shapes=["1x8x8"], options={})
    programs.append(second)
    status = second.end()
    with reader(tmp_path / "a.db") as read:
        run = read.resolve().run
    assert status == 1
    words = f"DeviceBusy: fake device 0 (Simulated Accelerator) is held by run {run}, process {first.pid} of user "
    assert second.printed.startswith(words)
    assert f"; if it is yours, 'kill {first.pid}' stops it" in second.printed


def test_a_run_right_after_a_kill_waits_for_the_orphans_instead_of_refusing(tmp_path: Path, programs: list[Program]) -> None:
    first = Program(tmp_path / "a.db", shapes=["1x8x8"], options={"faults": {"1x8x8": "hang"}})
    programs.append(first)
    first.wait_for("phase compile 1")
    (worker,) = of_run(first.pid)
    os.kill(worker, signal.SIGSTOP)  # it cannot hold the device any longer than the kernel needs to kill it
    os.kill(first.pid, signal.SIGKILL)
    second = Program(tmp_path / "b.db", shapes=["1x8x8"], options={})
    programs.append(second)
    assert second.end() == 0


def test_a_worker_killed_from_outside_is_a_crash_of_its_case_only(tmp_path: Path, programs: list[Program]) -> None:
    store = tmp_path / "store.db"
    program = Program(store, shapes=["1x8x8", "2x8x8"], options={"faults": {"1x8x8": "hang"}})
    programs.append(program)
    program.wait_for("phase compile 1")
    (worker,) = of_run(program.pid)
    os.kill(worker, signal.SIGKILL)
    assert program.end() == 0
    outcomes = {row.params["m"]: (row.outcome, row.reason) for row in rows_of(store) if row.job == "gemm"}
    assert outcomes[1][0] == "crashed"
    assert "died with SIGKILL while compiling" in outcomes[1][1]
    assert outcomes[2][0] == "ok"
