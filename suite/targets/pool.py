"""Children that compile: each is asked one cell at a time, killed with its group at the limit, and replaced.

A compiler that aborts takes its process with it: what it printed last is then the reason.
"""

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from suite.launcher.output import last_words
from suite.outcome import Outcome
from suite.reason import one_line
from suite.targets.record import LIMIT_S

MODULE = "backends.targets"
START_LIMIT_S = 180.0  # the first import of a framework from a cold disk takes most of a minute
DEATH_S = 10.0
COMPILERS_OWN = "LLVM ERROR"  # stands above the stack that LLVM prints
MOST_PRINTED = 1 << 16


class Asked(NamedTuple):
    """A program and a target by their names; ``kind`` is which framework compiles it."""

    program: str
    target: str
    kind: str


Answer = Mapping[str, Any]


def command_of(kind: str) -> list[str]:
    """What starts a child that compiles this kind."""
    return [sys.executable, "-m", MODULE, "serve", "--kind", kind, "--parent", str(os.getpid())]


class Child:
    """One process; ``asked`` is what it is at, ``None`` until it is ready and between two cells."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.printed = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the child
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.printed,
            start_new_session=True,
            env=dict(environment),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._asks, self.answers = self.process.stdin, self.process.stdout
        self.asked: Asked | None = None
        self.is_ready = False
        self._held = b""
        self._from = 0
        self.until_s = time.monotonic() + START_LIMIT_S

    def ask(self, asked: Asked, limit_s: float) -> None:
        """Hand over a cell; a child that has died is found out when its answer is read."""
        self.asked, self.until_s = asked, time.monotonic() + limit_s
        self._from = self.printed.seek(0, os.SEEK_END)
        with suppress(BrokenPipeError):
            self._asks.write(json.dumps({"program": asked.program, "target": asked.target}).encode() + b"\n")
            self._asks.flush()

    def read(self) -> Iterator[Answer] | None:
        """Answers that are whole, as they come; ``None`` where the child is gone."""
        data = os.read(self.answers.fileno(), MOST_PRINTED)
        if not data:
            return None
        *lines, self._held = (self._held + data).split(b"\n")
        return (json.loads(line) for line in lines)

    def end(self) -> int:
        """Kill it and whatever it started; returns its status."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        status = self.process.wait(DEATH_S)
        for file in (self._asks, self.answers, self.printed):
            with suppress(BrokenPipeError):
                file.close()
        return status

    def gone(self) -> str:
        """Why a child that closed its answers is gone, with the last it printed."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(DEATH_S)
        status = self.process.poll()
        how = f"died of {_signal(-status)}" if status is not None and status < 0 else f"left with status {status}"
        self.printed.seek(self._from)
        words = said_last(self.printed.read().decode(errors="replace"))
        return one_line(f"the compiler's process {how}: {words}" if words else f"the compiler's process {how} and {_silence()}")


def _silence() -> str:
    """What is known of a child without a word: what it prints goes into a file."""
    folder = tempfile.gettempdir()
    if not shutil.disk_usage(folder).free:
        return f"could print nothing, for the disk of {folder} is full; free some, or set TMPDIR to a folder with room"
    return "printed nothing"


def said_last(text: str) -> str:
    """The last line that a compiler printed, or the one in which it says that it gives up."""
    own = [line.strip() for line in text.splitlines() if COMPILERS_OWN in line]
    return own[-1][:200] if own else last_words(text)


class Pool:
    """``jobs`` children at most, each of one kind at a time; ``environment`` is theirs."""

    def __init__(self, jobs: int, limit_s: float, environment: Mapping[str, str], command: Any = command_of) -> None:
        self._jobs, self._limit_s, self._environment, self._command = jobs, limit_s, environment, command
        self._children: list[Child] = []

    def run(self, cells: Sequence[Asked]) -> Iterator[tuple[Asked, Answer]]:
        """Every cell's answer as it comes; whoever stops listening ends the children."""
        try:
            for kind in dict.fromkeys(cell.kind for cell in cells):
                yield from self._of_kind(kind, [cell for cell in cells if cell.kind == kind])
        finally:
            self._end_all()

    def _of_kind(self, kind: str, cells: Sequence[Asked]) -> Iterator[tuple[Asked, Answer]]:
        waiting = deque(cells)
        left = len(cells)
        with selectors.DefaultSelector() as selector:
            while left:
                self._start(kind, len(waiting), selector)
                for asked, answer in self._next(waiting, selector):
                    left -= 1
                    yield asked, answer
        self._end_all()

    def _start(self, kind: str, waiting: int, selector: selectors.BaseSelector) -> None:
        """As many children as there is work for."""
        idle = sum(child.asked is None for child in self._children)
        for _ in range(min(self._jobs - len(self._children), waiting - idle)):
            child = Child(self._command(kind), self._environment)
            self._children.append(child)
            selector.register(child.answers, selectors.EVENT_READ, child)

    def _next(self, waiting: deque[Asked], selector: selectors.BaseSelector) -> Iterator[tuple[Asked, Answer]]:
        """Answers that came, and what became of children that died or are past their limit."""
        soonest_s = min(child.until_s for child in self._children) - time.monotonic()
        for found, _ in selector.select(max(0.0, soonest_s)):
            child: Child = found.data
            answers = child.read()
            if answers is None:
                yield from self._lost(child, waiting, selector, Outcome.CRASHED, child.gone())
                continue
            for answer in answers:
                yield from self._heard(child, answer, waiting)
        for child in [each for each in self._children if time.monotonic() >= each.until_s]:
            why = f"not compiled within {self._limit_s:g} s; --timeout gives more"
            yield from self._lost(child, waiting, selector, Outcome.TIMEOUT, why)

    def _heard(self, child: Child, answer: Answer, waiting: deque[Asked]) -> Iterator[tuple[Asked, Answer]]:
        if child.asked is not None:
            yield child.asked, answer
        child.asked, child.is_ready = None, True
        if waiting:
            child.ask(waiting.popleft(), self._limit_s)
        else:
            child.until_s = float("inf")

    def _lost(
        self, child: Child, waiting: deque[Asked], selector: selectors.BaseSelector, outcome: Outcome, why: str
    ) -> Iterator[tuple[Asked, Answer]]:
        """A child that is no more; one that never came to be ready takes a cell with it, so that there is an end."""
        selector.unregister(child.answers)
        self._children.remove(child)
        child.end()
        if child.asked is None and child.is_ready:
            return
        if child.asked is None:
            why = why if outcome is Outcome.CRASHED else f"the compiler's process was not ready within {START_LIMIT_S:g} s"
        asked = child.asked or (waiting.popleft() if waiting else None)
        if asked is not None:
            facts = {LIMIT_S: self._limit_s} if outcome is Outcome.TIMEOUT else {}
            seconds = self._limit_s if outcome is Outcome.TIMEOUT else 0.0
            answer = {"outcome": outcome.value, "reason": why, "configuration": "", "facts": facts, "seconds": seconds}
            yield asked, answer

    def _end_all(self) -> None:
        for child in self._children:
            child.end()
        self._children = []


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
