"""Processes with a time limit: what they print, how they fail, and that nothing of them is left."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.patience import PATIENCE_S
from tests.peers.child import Deadline, PeerFailed, TurnTaker, end, last_line, run, run_logged

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_what_a_program_prints_comes_back() -> None:
    assert run("peer", python("print('hello')"), PATIENCE_S) == "hello\n"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import sys; sys.exit('out of luck')", "peer ended with status 1: out of luck"),
        ("raise ValueError('why')", "peer ended with status 1: ValueError: why"),
        ("import os; os.kill(os.getpid(), 9)", "peer ended with status -9"),
    ],
)
def test_a_failure_is_one_line(code: str, says: str) -> None:
    with pytest.raises(PeerFailed, match=says):
        run("peer", python(code), PATIENCE_S)


def test_a_program_that_is_not_there_and_one_without_time_are_not_started() -> None:
    with pytest.raises(PeerFailed, match="peer cannot be started: No such file"):
        run("peer", ["/nowhere/at/all"], PATIENCE_S)
    with pytest.raises(PeerFailed, match="no time was left for peer"):
        run("peer", ["/nowhere/at/all"], 0)


def test_a_program_that_is_ended_takes_along_what_it_started() -> None:
    with subprocess.Popen(python(PARENT), stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        started = psutil.Process(int(parent.stdout.readline()))
        end(parent)
    assert not started.is_running()


def test_a_program_ends_at_its_limit(tmp_path: Path) -> None:
    with pytest.raises(PeerFailed, match=r"peer was still running after 0.05 s"):
        run_logged("peer", python("import time; time.sleep(600)"), 0.05, tmp_path / "log")


def test_a_log_grows_and_a_status_is_no_failure(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    run_logged("peer", python("import sys; print('here', flush=True); sys.exit('there')"), PATIENCE_S, log)
    assert log.read_text() == "before\nhere\nthere\n"
    with pytest.raises(PeerFailed, match="peer was ended by SIGKILL"):
        run_logged("peer", python("import os; os.kill(os.getpid(), 9)"), PATIENCE_S, log)


def test_a_peer_takes_turns() -> None:
    code = "print('noise'); print('ready', flush=True); print('got', input(), flush=True)"
    with TurnTaker("peer", python(code)) as peer:
        peer.wait("ready", PATIENCE_S)
        peer.send("go")
        peer.wait("got go", PATIENCE_S)
        peer.finish(PATIENCE_S)


def test_a_peer_that_ends_before_its_word_is_told_by_what_it_said() -> None:
    with TurnTaker("peer", python("raise RuntimeError('no device')")) as peer:
        with pytest.raises(PeerFailed, match="peer ended before it said 'ready': RuntimeError: no device"):
            peer.wait("ready", PATIENCE_S)
        with pytest.raises(PeerFailed, match="peer ended with status 1"):
            peer.finish(PATIENCE_S)


def test_a_peer_that_says_nothing_is_waited_for_no_longer_than_its_limit_and_then_ended() -> None:
    with TurnTaker("peer", python("import time; time.sleep(600)")) as peer:
        process = psutil.Process(peer._process.pid)
        with pytest.raises(PeerFailed, match=r"did not say 'ready' within 0.05 s"):
            peer.wait("ready", 0.05)
        with pytest.raises(PeerFailed, match=r"was still running after 0.05 s"):
            peer.finish(0.05)
    assert not process.is_running()


def test_a_deadline_never_counts_below_zero() -> None:
    assert Deadline(-1.0).left_s() == 0.0
    assert 0.0 < Deadline(100.0).left_s() <= 100.0


def test_the_last_line_is_the_last_that_says_something() -> None:
    assert last_line("Traceback:\n  x\nValueError: y\n\n") == "ValueError: y"
    assert last_line("") == ""
