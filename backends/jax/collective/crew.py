"""The process with a world's devices, as the worker sees it: kept from case to case, exchanged for another world."""

import os
import socket
import subprocess
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from backends.failures import Classified
from backends.jax.collective.orders import Broke, Leave, Order
from suite.backend import Failure
from suite.killing import end
from suite.outcome import Outcome
from suite.ranks.ending import ended

MODULE = "backends.jax.collective.devices"
GRACE_S = 2.0
LEAVE_S = 5.0


class Crew:
    """``ask`` raises ``Classified`` when the process dies or an order raises there.

    One that hangs is left to the deadline of the phase, which kills the worker's process group.
    """

    def __init__(self, ranks: int, module: str = MODULE) -> None:
        self.ranks = ranks
        ours, theirs = socket.socketpair()
        words = {"fd": theirs.fileno(), "parent": os.getpid(), "ranks": ranks}
        command = [sys.executable, "-m", module, *(f"--{name}={value}" for name, value in words.items())]
        with theirs:
            self._process = subprocess.Popen(command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL)
        self._connection = Connection(ours.detach())

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can be told anything."""
        return self._process.poll() is None and not self._connection.closed

    def ask(self, order: Order) -> Any:
        """Have an order carried out and return its answer."""
        try:
            self._connection.send(order)
            answer = self._connection.recv()
        except (EOFError, ConnectionError):
            raise Classified(self._death()) from None
        if isinstance(answer, Broke):
            raise Classified(Failure(answer.outcome, answer.reason, fatal=False))
        return answer.value

    def close(self) -> None:
        """Let it leave, and kill it if it does not."""
        with suppress(ConnectionError, OSError):
            self._connection.send(Leave())
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(LEAVE_S)
        self._kill()

    def _death(self) -> Failure:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        status = self._process.poll()
        self._kill()
        told = "closed its connection" if status is None else ended(status)
        return Failure(Outcome.CRASHED, f"the process with the {self.ranks} devices {told}", fatal=False)

    def _kill(self) -> None:
        end(self._process)
        self._connection.close()


class Crews:
    """The crew of this process, one at a time."""

    def __init__(self) -> None:
        self._crew: Crew | None = None

    def of(self, ranks: int) -> Crew:
        """The crew of a world: the present one, or another in its place."""
        if self._crew is None or not self._crew.alive or self._crew.ranks != ranks:
            self.dismiss()
            self._crew = Crew(ranks)
        return self._crew

    def dismiss(self) -> None:
        """Let the present crew go."""
        if self._crew is not None:
            self._crew.close()
        self._crew = None
