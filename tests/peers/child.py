"""Peers run in processes of their own, each with a time limit: one that hangs or crashes costs its rows and nothing else."""

import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from suite.reason import one_line

KILLED_AFTER_S = 5.0  # what a process that was killed may take to be gone


class PeerFailed(Exception):
    """A peer gave no result; the message says why in one line."""


class Deadline:
    """A point in time that a part must not pass."""

    def __init__(self, seconds: float) -> None:
        self._ends_s = time.monotonic() + seconds

    def left_s(self) -> float:
        return max(0.0, self._ends_s - time.monotonic())


def run(name: str, argv: Sequence[str], limit_s: float) -> str:
    """Run to the end and return what was printed to standard output; ``PeerFailed`` for anything but success in time."""
    if limit_s <= 0:
        raise PeerFailed(f"no time was left for {name}")
    try:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        raise PeerFailed(f"{name} cannot be started: {error.strerror}") from error
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise PeerFailed(f"{name} was still running after {limit_s:.3g} s") from None
    finally:
        end(process)
    if process.returncode:
        raise PeerFailed(f"{name} ended with status {process.returncode}: {last_line(err) or last_line(out)}")
    return out


def run_logged(name: str, argv: Sequence[str], limit_s: float, log: Path) -> None:
    """Run to the end with everything printed appended to ``log``; ``PeerFailed`` where it takes too long or is killed.

    A status of its own is no failure here: the program says in its results what went wrong.
    """
    with log.open("a") as output:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, text=True)
        try:
            status = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise PeerFailed(f"{name} was still running after {limit_s:.3g} s") from None
        finally:
            end(process)
    if status < 0:
        raise PeerFailed(f"{name} was ended by {signal.Signals(-status).name}")


def end(process: "subprocess.Popen[str]") -> None:
    """Kill a process that still runs, and everything that it started."""
    if process.poll() is not None:
        return
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    for each in family:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    psutil.wait_procs(family, timeout=KILLED_AFTER_S)  # a device driver may hold one a while
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=KILLED_AFTER_S)


def last_line(text: str) -> str:
    """The last line that says something: of a traceback, the error."""
    return one_line(next((line for line in reversed(text.splitlines()) if line.strip()), ""))


class TurnTaker:
    """A peer that takes turns: it prints a word when it is ready or done, and goes on when it is sent a line.

    ``with`` ends it.  Every wait has a limit and raises ``PeerFailed``.
    """

    def __init__(self, name: str, argv: Sequence[str]) -> None:
        self._name = name
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # __exit__ closes it
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait(self, word: str, limit_s: float) -> None:
        """Return once the peer has printed ``word`` on a line of its own; other lines are passed over."""
        deadline = Deadline(limit_s)
        while True:
            try:
                line = self._lines.get(timeout=max(deadline.left_s(), 1e-3))
            except queue.Empty:
                raise PeerFailed(f"{self._name} did not say '{word}' within {limit_s:.3g} s") from None
            if line is None:
                raise PeerFailed(f"{self._name} ended before it said '{word}': {self._said()}")
            if line.strip() == word:
                return

    def send(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except OSError:
            raise PeerFailed(f"{self._name} ended before its turn: {self._said()}") from None

    def finish(self, limit_s: float) -> None:
        """Send nothing more and wait for the peer's own end; ``PeerFailed`` where it fails or takes too long."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            status = self._process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise PeerFailed(f"{self._name} was still running after {limit_s:.3g} s") from None
        if status:
            raise PeerFailed(f"{self._name} ended with status {status}: {self._said()}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        end(self._process)
        self._reader.join(KILLED_AFTER_S)
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with suppress(OSError):  # what was still to be sent to a process that is gone
                    stream.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _said(self) -> str:
        self._errors.seek(0)
        return last_line(self._errors.read())
