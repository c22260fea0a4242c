"""One worker process, from its start to its end, as the launcher sees it."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from suite.killing import has_ended
from suite.launcher.deadlines import limit_s
from suite.launcher.death import Death, diagnose
from suite.launcher.output import Output, last_words
from suite.launcher.reaper import MARK, kill_marked
from suite.oom_kills import oom_kill_count
from suite.outcome import Outcome
from suite.planned import DeviceSlot, PlannedCase
from suite.protocol import (
    PROTOCOL_VERSION,
    Advanced,
    CaseReply,
    CaseRequest,
    Connection,
    ConnectionClosed,
    Drop,
    Ended,
    Failed,
    Finish,
    Glance,
    Hello,
    LookAt,
    Looked,
    Message,
    Phase,
    Prepare,
    ProtocolError,
    Ready,
    Refused,
    Round,
    Stop,
)
from suite.settings import MeasureSettings

DOING = {"start": "starting", "compile": "compiling", "verify": "verifying", "measure": "measuring"}
# Anything else is a second answer to an earlier request, and would be credited to this one.
ANSWERS: dict[type[Message], tuple[type[Message], ...]] = {
    Prepare: (Advanced, Ended, Failed),
    Round: (Advanced, Failed),
    Finish: (Ended, Failed),
    LookAt: (Advanced, Failed),
    Glance: (Looked, Failed),
    Drop: (Advanced, Failed),
}
GRACE_S = 2.0  # between a closed connection and the end of the process
LEAVE_S = 10.0  # a framework takes seconds to tear down a device
# A grandchild may hold the worker's end of the connection open, so that its end is not seen there: look at the process.
LOOK_EVERY_S = 0.5


class WorkerLost(Exception):
    """The worker is dead, by itself or killed; ``death`` is what that means for the case it served."""

    def __init__(self, death: Death) -> None:
        super().__init__(death.reason)
        self.death = death


class WorkerRefused(WorkerLost):
    """The worker said that it cannot serve: starting another would end the same way."""


class Birth(NamedTuple):
    """What a worker is started with.  ``holds`` are descriptors of device locks that live as long as the worker does."""

    slot: DeviceSlot
    device_index: int
    options: Mapping[str, Any]
    settings: MeasureSettings
    mark: str
    holds: tuple[int, ...] = ()


class WorkerProcess:
    """Started by the constructor in a session of its own; ``ready()`` must come before the first ``ask()``."""

    def __init__(self, birth: Birth) -> None:
        self._birth = birth
        self._output = Output()
        self._oom_before = oom_kill_count()
        ours, theirs = socket.socketpair()
        with theirs:
            self._popen = subprocess.Popen(
                _command(birth, theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=self._output.write_fd,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(), *birth.holds),
                start_new_session=True,
                env={**os.environ, "PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1", MARK: birth.mark},
            )
        self._output.started()
        self._connection = Connection(ours)
        self._began = time.monotonic()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def log(self) -> str:
        """What the worker has printed."""
        return self._output.text()

    def ready(self) -> Ready:
        """Wait until the backend is loaded; ``WorkerLost`` or ``WorkerRefused`` when that fails or takes too long."""
        until = self._began + limit_s("start", self._birth.settings)
        answer = self._exchange(Hello(self._birth.options, self._birth.settings), "start", until)
        if isinstance(answer, Ready) and answer.version == PROTOCOL_VERSION:
            return answer
        self.kill()
        if isinstance(answer, Refused):
            raise WorkerRefused(Death(Outcome.ERROR, answer.reason))
        raise WorkerRefused(Death(Outcome.ERROR, f"worker speaks another protocol than version {PROTOCOL_VERSION}"))

    def ask(self, request: CaseRequest, phase: str, planned: PlannedCase, announce: Callable[[str], None]) -> CaseReply:
        """Have one request carried out, each phase within its deadline, the first being ``phase``.

        A worker that dies, stalls or talks nonsense is killed with its children, and ``WorkerLost`` says why.
        """
        answer = self._exchange(request, phase, time.monotonic() + limit_s(phase, self._birth.settings, planned), planned)
        while isinstance(answer, Phase) and answer.ticket == request.ticket and answer.name in DOING:
            phase = answer.name
            announce(phase)
            answer = self._next(phase, time.monotonic() + limit_s(phase, self._birth.settings, planned), planned)
        due = isinstance(answer, ANSWERS[type(request)])
        if due and isinstance(answer, CaseReply) and answer.ticket == request.ticket:
            return answer
        self.kill()
        raise WorkerLost(Death(Outcome.CRASHED, _out_of_turn(request, answer)))

    def stop(self) -> None:
        """Let the worker leave; kill it, and whatever it leaves behind, when it does not."""
        with contextlib.suppress(ConnectionClosed):
            self._connection.send(Stop())
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(LEAVE_S)
        self.kill()

    def kill(self) -> None:
        """Kill the worker, its process group and everything that bears its mark; harmless when it is dead."""
        if self._popen.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)
            has_ended(self._popen)
        kill_marked(self._birth.mark)
        self._output.ended()

    def close(self) -> None:
        """Close the connection of a worker that is dead; not while another thread waits on it."""
        self._connection.close()

    def _exchange(self, request: Message, phase: str, until: float, planned: PlannedCase | None = None) -> Message:
        try:
            self._connection.send(request)
        except ConnectionClosed:
            raise WorkerLost(self._bury(phase)) from None
        return self._next(phase, until, planned)

    def _next(self, phase: str, until: float, planned: PlannedCase | None = None) -> Message:
        """Return the next message, or kill the worker and say why there is none."""
        try:
            message = self._receive(until)
        except ConnectionClosed:
            raise WorkerLost(self._bury(phase)) from None
        except ProtocolError as error:
            self.kill()
            raise WorkerLost(Death(Outcome.CRASHED, f"worker sent what cannot be read while {DOING[phase]}: {error}")) from None
        if message is None:
            self.kill()
            words = last_words(self.log)
            said = f"; last log line: {words}" if words else ""
            raise WorkerLost(Death(Outcome.TIMEOUT, f"{_too_long(phase, self._birth.settings, planned)}{said}"))
        return message

    def _receive(self, until: float) -> Message | None:
        while (left_s := until - time.monotonic()) > 0:
            ended = self._popen.poll() is not None
            message = self._connection.receive(min(left_s, LOOK_EVERY_S))
            if message is not None:
                return message
            if ended:
                raise ConnectionClosed("the worker has ended")
        return None

    def _bury(self, phase: str) -> Death:
        """Explain the end of a worker whose connection is closed."""
        try:
            status = self._popen.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return Death(Outcome.CRASHED, f"worker closed its connection while {DOING[phase]}")
        self.kill()
        return diagnose(status, DOING[phase], self.log, oom_kill_count() - self._oom_before)


def _command(birth: Birth, fd: int) -> list[str]:
    command = [sys.executable, "-m", "suite.worker", "--fd", str(fd), "--parent", str(os.getpid())]
    command += ["--target", birth.slot.target, "--index", str(birth.device_index)]
    return command + [word for descriptor in birth.holds for word in ("--hold", str(descriptor))]


def _out_of_turn(request: CaseRequest, answer: Message) -> str:
    ticket = getattr(answer, "ticket", request.ticket)
    whose = f" of case {ticket} while case {request.ticket} was asked for" if ticket != request.ticket else ""
    return f"worker answered {type(request).__name__} with {type(answer).__name__}{whose}"


def _too_long(phase: str, settings: MeasureSettings, planned: PlannedCase | None) -> str:
    whole_s, own_s = limit_s(phase, settings, planned), limit_s(phase, settings)
    more = f" plus {whole_s - own_s:.3g} s that the regime and the plan ask for" if whole_s > own_s else ""
    return f"{DOING[phase]} took longer than measure.deadlines.{phase}_s={own_s:g}{more}; killed in phase {phase}"
