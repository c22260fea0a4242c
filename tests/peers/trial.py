"""Trying a kernel once in a process of its own: one that never ends costs its own figures, not those of all others."""

from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

READY_S = 60.0  # to load torch and a device's driver
ENDS_S = 15.0
KILLED_S = 10.0  # what a driver may take to end a kernel

Attempt = Callable[[], str]


class Trial:
    """Attempts one after the other in a process that is killed where one takes longer than ``ends_s``.

    An attempt returns why it failed, or nothing; it is pickled.  ``with`` ends the process.
    """

    def __init__(self, ends_s: float = ENDS_S) -> None:
        self._ends_s = ends_s
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def reason(self, attempt: Attempt) -> str:
        """Why an attempt came to nothing; empty where it did not."""
        try:
            pipe = self._ready()
            pipe.send(attempt)
            if pipe.poll(self._ends_s):
                return str(pipe.recv())
            said = f"it had not ended after {self._ends_s:.3g} s, and was killed"
        except (EOFError, OSError):
            said = "the process that tried it died"
        self.close()
        return said

    def _ready(self) -> Connection:
        if self._pipe is None:
            context = get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
            if not self._pipe.poll(READY_S):
                raise EOFError
            self._pipe.recv()
        return self._pipe

    def close(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.kill()
            self._process.join(KILLED_S)
        self._pipe = self._process = None

    def __enter__(self) -> "Trial":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _serve(pipe: Connection) -> None:
    with suppress(EOFError, OSError, KeyboardInterrupt):
        pipe.send("ready")
        while True:
            pipe.send(pipe.recv()())
