"""A worker process talked to directly: start, refusal, and what it does when its launcher is strange or gone."""

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from suite.backend import Failure
from suite.launcher.process import Birth, WorkerLost, WorkerProcess, WorkerRefused
from suite.launcher.seat import Seat
from suite.measurement import Measurement
from suite.outcome import Outcome
from suite.planned import DeviceSlot
from suite.protocol import (
    Advanced,
    Connection,
    ConnectionClosed,
    Ended,
    Failed,
    Finish,
    Hello,
    Message,
    Phase,
    Prepare,
    Ready,
    Refused,
    Round,
    Stop,
)
from suite.reason import named
from suite.settings import MeasureSettings
from suite.worker.serve import caught
from tests.patience import PATIENCE_S
from tests.processes.bench import ROOT, TARGET, alive, gone_within, planned, quick, run
from tests.processes.strange import Speechless


class Bare:
    """A worker with nothing but its socket."""

    def __init__(self, target: str = TARGET, parent: int | None = None) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "suite.worker", "--fd", str(theirs.fileno()), "--parent", str(parent or os.getpid())]
        with theirs:
            self.process = subprocess.Popen(
                [*command, "--target", target, "--index", "0"],
                pass_fds=(theirs.fileno(),),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONSAFEPATH": "1"},
            )
        self.socket = ours
        self.connection = Connection(ours)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.socket.close()


@pytest.fixture
def bare() -> Iterator[Bare]:
    worker = Bare()
    yield worker
    worker.close()


def process(target: str = TARGET, settings: MeasureSettings | None = None, **options: object) -> WorkerProcess:
    return WorkerProcess(
        Birth(DeviceSlot(0, "fake", target, None), 0, options, settings or quick(), f"test-{time.monotonic_ns()}")
    )


def test_a_worker_of_another_protocol_version_refuses(bare: Bare) -> None:
    bare.connection.send(Hello({}, MeasureSettings(), version=99))
    answer = bare.connection.receive(PATIENCE_S)
    assert isinstance(answer, Refused)
    assert "version 2, the launcher version 99" in answer.reason
    assert bare.process.wait(PATIENCE_S) == 1


def test_the_launcher_refuses_a_worker_of_another_protocol_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.launcher.process.PROTOCOL_VERSION", 99)
    worker = process()
    with pytest.raises(WorkerRefused, match="another protocol than version 99"):
        worker.ready()
    assert not alive(worker.pid)
    worker.close()


@pytest.mark.parametrize("garbage", [b"\xff" * 64, struct.pack("!I", 5) + b"12345", struct.pack("!I", 2**31)])
def test_a_worker_that_is_sent_garbage_ends(bare: Bare, garbage: bytes) -> None:
    bare.connection.send(Hello({}, MeasureSettings()))
    assert isinstance(bare.connection.receive(PATIENCE_S), Ready)
    bare.socket.sendall(garbage)
    assert bare.process.wait(PATIENCE_S) == 1


def test_a_worker_ends_when_its_launcher_closes_the_connection(bare: Bare) -> None:
    bare.connection.send(Hello({}, MeasureSettings()))
    assert isinstance(bare.connection.receive(PATIENCE_S), Ready)
    bare.socket.close()
    assert bare.process.wait(PATIENCE_S) == 0


def test_a_worker_leaves_when_told(bare: Bare) -> None:
    bare.connection.send(Hello({}, MeasureSettings()))
    assert isinstance(bare.connection.receive(PATIENCE_S), Ready)
    bare.connection.send(Stop())
    assert bare.process.wait(PATIENCE_S) == 0


def test_a_worker_whose_parent_was_gone_before_it_could_bind_leaves_at_once() -> None:
    worker = Bare(parent=1)
    assert worker.process.wait(PATIENCE_S) == 1
    worker.close()


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("tests.fake.backend:NoSuchClass", "AttributeError.*NoSuchClass"),
        ("no.such.module:Class", "ModuleNotFoundError: No module named 'no'"),
        ("broken_backend:Backend", "SyntaxError"),
    ],
)
def test_a_backend_that_cannot_be_loaded_is_refused_with_its_reason(tmp_path: Path, target: str, reason: str) -> None:
    worker = process(target) if "broken" not in target else _broken(tmp_path)
    with pytest.raises(WorkerRefused, match=reason) as raised:
        worker.ready()
    assert raised.value.death.outcome is Outcome.ERROR
    assert "Traceback" in worker.log
    worker.close()


def _broken(folder: Path) -> WorkerProcess:
    (folder / "broken_backend.py").write_text("class Backend(:\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{os.environ['PYTHONPATH']}:{folder}")
        return process("broken_backend:Backend")


def test_a_worker_that_dies_at_start_is_lost_with_its_last_words() -> None:
    worker = process(start="say_and_die:no driver here")
    with pytest.raises(WorkerLost, match="died with SIGABRT while starting; last log line: no driver here"):
        worker.ready()
    worker.close()


def test_a_worker_that_hangs_at_start_is_killed_at_the_deadline() -> None:
    worker = process(settings=quick(start_s=0.5), start="hang")
    began = time.monotonic()
    with pytest.raises(WorkerLost, match=r"starting took longer than measure.deadlines.start_s=0.5") as raised:
        worker.ready()
    assert raised.value.death.outcome is Outcome.TIMEOUT
    assert time.monotonic() - began < PATIENCE_S
    assert not alive(worker.pid)
    worker.close()


def test_a_worker_that_sends_garbage_is_lost() -> None:
    worker = process("tests.processes.strange:Garbling")
    with pytest.raises(WorkerLost, match=r"worker sent what cannot be read while starting: .*exceeds"):
        worker.ready()
    assert gone_within(worker.pid, 0)
    worker.close()


def test_modules_in_the_users_folder_do_not_shadow_the_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "suite.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    worker = process()
    assert isinstance(worker.ready(), Ready)
    worker.stop()
    worker.close()


def test_a_stopped_worker_is_gone_and_its_environment_left_ours_alone() -> None:
    before = dict(os.environ)
    worker = process()
    worker.ready()
    assert alive(worker.pid)
    worker.stop()
    assert not alive(worker.pid)
    assert dict(os.environ) == before
    worker.close()


def test_a_worker_dies_with_a_killed_parent_even_while_it_cannot_run_python(tmp_path: Path) -> None:
    """The kernel kills it: a worker that is stopped, or inside a kernel call of a library, runs no handler of its own."""
    script = (
        "import time; from tests.processes.test_worker import process; w = process(); w.ready(); "
        "print(w.pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    os.kill(worker, signal.SIGSTOP)
    parent.kill()
    parent.communicate()
    assert gone_within(worker, PATIENCE_S)


STRAY = [
    (Finish(4), Ended(3, Measurement(Outcome.ERROR, "another's"))),
    (Round(4, 0), Failed(3, Outcome.ERROR, "another's", False)),
    (Finish(4), Advanced(4)),
    (Round(4, 0), Phase(3, "measure")),
]


@pytest.mark.parametrize(("request_", "stray"), STRAY, ids=["ended", "failed", "advanced", "phase"])
def test_an_answer_to_something_else_loses_the_worker_and_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch, request_: Round | Finish, stray: Message
) -> None:
    worker = process()
    worker.ready()
    monkeypatch.setattr(Connection, "send", lambda *_: None)
    monkeypatch.setattr(Connection, "receive", lambda *_: stray)
    with pytest.raises(WorkerLost, match=f"answered {type(request_).__name__} with {type(stray).__name__}") as raised:
        worker.ask(request_, "measure", planned(), lambda _: None)
    assert raised.value.death.outcome is Outcome.CRASHED
    assert gone_within(worker.pid, 0)
    worker.close()


def test_no_two_cases_of_a_run_have_the_same_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    ask = Seat.ask

    def noted(self: Seat, request: Any, *given: Any) -> Any:
        if isinstance(request, Prepare):
            asked.append(request.ticket)
        return ask(self, request, *given)

    monkeypatch.setattr(Seat, "ask", noted)
    run([planned(f"{m}x8x8") for m in (1, 2, 3)], faults={"2x8x8": "abort"})
    assert len(asked) == len(set(asked)) == 3


def raising(error: BaseException) -> Callable[..., Any]:
    def act(*_: object) -> Any:
        raise error

    return act


def meant(error: BaseException) -> Failure:
    return Failure(Outcome.OUT_OF_MEMORY, f"{error}\nat length", fatal=False)


def test_what_a_case_raises_is_what_the_backend_says_it_means() -> None:
    assert caught(lambda: None, meant) is None
    assert caught(raising(ValueError("too much")), meant) == Failure(Outcome.OUT_OF_MEMORY, "too much at length", fatal=False)


@pytest.mark.parametrize(
    "classify",
    [raising(RuntimeError("no idea")), lambda _: Failure(Outcome.ERROR, None, fatal=False), lambda _: None],  # type: ignore[arg-type]
    ids=["raises", "a reason that is no text", "no failure at all"],
)
def test_a_backend_that_cannot_say_what_an_error_means_ends_its_worker(
    capfd: pytest.CaptureFixture[str], classify: Callable[[BaseException], Failure]
) -> None:
    """With the error of the case as the reason; both tracebacks are in the worker's log."""
    assert caught(raising(ValueError("the case's own")), classify) == Failure(
        Outcome.ERROR, "ValueError: the case's own", fatal=True
    )
    assert capfd.readouterr().err.count("Traceback") == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), ConnectionClosed("gone")])
def test_what_ends_the_worker_is_nobodys_outcome(error: BaseException) -> None:
    with pytest.raises(type(error)):
        caught(raising(error), meant)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("\n  first\nsecond"), "ValueError: first"),
        (ValueError(), "ValueError"),
        (KeyError("name"), "KeyError: 'name'"),
        (Speechless(), "Speechless: <exception str() failed>"),
        (
            ValueError("Invalid log settings: bogus, must be a comma separated list of fully\nqualified module names.\nmore"),
            "ValueError: Invalid log settings: bogus, must be a comma separated list of fully qualified module names.",
        ),
        (
            ValueError(f"{'a long line that is broken ' * 3}\nShown below"),
            f"ValueError: {'a long line that is broken ' * 3}"[:-1],
        ),
        (ValueError(f"{'a long line that is broken ' * 3}:\nbelow"), f"ValueError: {'a long line that is broken ' * 3}:"),
        (ValueError(f"{'a long line that is broken ' * 3}\n\nbelow"), f"ValueError: {'a long line that is broken ' * 3}"[:-1]),
    ],
)
def test_an_exception_is_named_with_the_first_line_of_what_it_says(error: BaseException, reason: str) -> None:
    assert named(error) == reason
