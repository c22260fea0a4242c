"""A worker's loop: load one backend, then carry out what the launcher asks, case by case."""

import os
import socket
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from suite.backend import Backend, Failure
from suite.errors import UsageError
from suite.loading import loaded
from suite.measure.look import Look, Unsupported
from suite.measure.spine import Order, Trial
from suite.outcome import Outcome
from suite.plugins.contract import lacking
from suite.protocol import (
    PROTOCOL_VERSION,
    Advanced,
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
    Phase,
    Prepare,
    ProtocolError,
    Ready,
    Refused,
    Round,
    Stop,
)
from suite.reason import named, one_line
from suite.settings import MeasureSettings

CHANGED = "roofbench was changed while it ran; start the run again"


def serve(sock: socket.socket, target: str, index: int) -> int:
    """Serve one launcher until it says ``Stop`` or is gone; return the exit status."""
    connection = Connection(sock)
    try:
        worker = _start(connection, target, index)
        return worker.run() if worker else 1
    except ConnectionClosed:
        return 0


def _start(connection: Connection, target: str, index: int) -> "Worker | None":
    """Answer ``Hello``: with ``Ready`` and a worker, or with ``Refused`` and ``None``."""
    hello = connection.receive()
    if not isinstance(hello, Hello) or hello.version != PROTOCOL_VERSION:
        spoken = f"version {hello.version}" if isinstance(hello, Hello) else type(hello).__name__
        connection.send(Refused(f"this worker speaks protocol version {PROTOCOL_VERSION}, the launcher {spoken}: {CHANGED}"))
        return None
    started: list[Worker] = []

    def start() -> None:
        backend = made(target, hello.options)
        device = backend.select(index)
        connection.send(Ready(os.getpid(), device, backend.evidence, backend.environment()))
        started.append(Worker(connection, backend, hello.settings))

    failure = caught(start, describe)
    if failure:
        connection.send(Refused(one_line(f"backend {target} did not start: {failure.reason}")))
        return None
    return started[0]


def made(target: str, options: Mapping[str, Any]) -> Backend:
    """The backend that ``module:Class`` names, made with its options; ``UsageError`` where it lacks a part of the contract."""
    backend: Backend = loaded(target)(options)
    if missing := lacking(backend, Backend):
        raise UsageError(f"lacks {', '.join(missing)}, which suite.backend.Backend asks for")
    return backend


def describe(error: BaseException) -> Failure:
    """What an exception means where no backend is loaded that could say."""
    return Failure(Outcome.ERROR, named(error), fatal=True)


class Worker:
    """Carries out requests on one backend."""

    def __init__(self, connection: Connection, backend: Backend, settings: MeasureSettings) -> None:
        self._connection = connection
        self._backend = backend
        self._settings = settings
        self._trials: dict[int, Trial] = {}
        self._looks: dict[int, Look] = {}

    def run(self) -> int:
        """Answer until told to stop, or until a failure leaves this process unable to go on."""
        while True:
            request = self._connection.receive()
            if isinstance(request, Stop):
                return 0
            if not isinstance(request, CaseRequest):
                raise ProtocolError(f"{type(request).__name__} is not asked of a worker that serves")
            failure = self._answer(request)
            if failure:
                self._connection.send(failure)
                if failure.fatal:
                    return 1

    def _answer(self, request: CaseRequest) -> Failed | None:
        """Carry out one request and send its answer; or return what went wrong, with the case freed."""
        failure = caught(lambda: self._carry_out(request), self._backend.classify)
        if failure is None:
            return None
        if failure.fatal:
            return Failed(request.ticket, failure.outcome, failure.reason, fatal=True)
        unfreed = caught(lambda: self._free(request.ticket), self._backend.classify)
        return Failed(request.ticket, failure.outcome, failure.reason, fatal=unfreed is not None)

    def _carry_out(self, request: CaseRequest) -> None:
        match request:
            case Prepare():
                self._prepare(request)
            case Round(ticket, index):
                self._trials[ticket].measure(index)
                self._connection.send(Advanced(ticket))
            case Finish(ticket):
                measurement = self._trials[ticket].finish()
                self._free(ticket)
                self._connection.send(Ended(ticket, measurement))
            case LookAt():
                self._look_at(request)
            case Glance(ticket, seconds, idle_s):
                self._connection.send(Looked(ticket, self._looks[ticket].take(seconds, idle_s)))
            case Drop(ticket):
                self._free(ticket)
                self._connection.send(Advanced(ticket))

    def _prepare(self, request: Prepare) -> None:
        ticket = request.ticket
        order = Order(request.sets, request.tolerance, request.seed, request.rounds)
        trial = Trial(
            self._backend, request.case, order, self._settings, lambda phase: self._connection.send(Phase(ticket, phase))
        )
        self._trials[ticket] = trial
        ended = trial.prepare()
        if ended is None:
            self._connection.send(Advanced(ticket))
        else:
            self._free(ticket)
            self._connection.send(Ended(ticket, ended))

    def _look_at(self, request: LookAt) -> None:
        try:
            self._looks[request.ticket] = Look(self._backend, request.case, request.seed, self._settings.sample_s)
        except Unsupported as unsupported:
            self._connection.send(Failed(request.ticket, Outcome.UNSUPPORTED, one_line(str(unsupported)), fatal=False))
        else:
            self._connection.send(Advanced(request.ticket))

    def _free(self, ticket: int) -> None:
        for held in (self._trials.pop(ticket, None), self._looks.pop(ticket, None)):
            if held is not None:
                held.close()


def caught(action: Callable[[], None], classify: Callable[[BaseException], Failure]) -> Failure | None:
    """Run ``action``; return ``None``, or what the exception it raised means.

    Every exception is caught here: whatever a kernel, a framework or a compiler raises is the outcome of
    one case, and the cases after it still have to run.  The traceback goes to the worker's log.
    """
    try:
        action()
        return None
    except ConnectionClosed:
        raise
    except Exception as error:
        traceback.print_exc()
        raised = error
    return _meaning(raised, classify)


def _meaning(error: Exception, classify: Callable[[BaseException], Failure]) -> Failure:
    """Ask what an exception means; where asking fails too nobody can say whether the process can go on, and it leaves."""
    if classify is describe:
        return describe(error)
    answers: list[Failure] = []

    def ask() -> None:
        failure = classify(error)
        answers.append(failure._replace(reason=one_line(failure.reason)))

    caught(ask, describe)
    return answers[0] if answers else describe(error)
