"""Watching a sweep: a live display on a terminal, plain lines where there is none.

A display is a context manager that is called with each of ``suite.events``; it only reads them.
"""

import time
from collections import Counter
from types import TracebackType
from typing import Protocol, Self, TextIO

from suite.events import CaseFinished, Event, PhaseStarted, SweepFinished, SweepStarted, WorkerRestarted
from suite.report.words import case_title, duration, percent
from suite.rows import ResultRow
from suite.show.results import remark, span

PHASE_WORDS = {"compile": "preparing", "verify": "checking", "measure": "measuring"}


class Display(Protocol):
    """Shows a sweep's events between ``__enter__`` and ``__exit__``."""

    def __call__(self, event: Event) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


def display(stream: TextIO) -> Display:
    """Live on a terminal, else one line a finished case."""
    if not stream.isatty():
        return Lines(stream)
    from suite.show.live import Live

    return Live(stream)


def result_words(row: ResultRow) -> str:
    """How a case ended: ``1.63 ms, 92.1 % of the compute roof``, or its outcome and reason."""
    if row.p50_s is None:
        return remark(row)
    best, roof = _fraction(row)
    share = f", {percent(best)} of the {roof} roof" if best is not None else ""
    bound = f", {row.bound} bound" if row.bound else ""
    trust = f" ({remark(row)})" if remark(row) else ""
    return f"{duration(row.p50_s)}{share}{bound}{trust}"


def _fraction(row: ResultRow) -> tuple[float | None, str]:
    """Against the spec sheet where there is one, else against what this device has been measured to do."""
    if row.fractions.spec is not None:
        return row.fractions.spec, "spec"
    return row.fractions.empirical, "empirical"


class Tally:
    """What both displays know: how many are done, what each slot is doing, how cases ended, how long is left."""

    def __init__(self) -> None:
        self.run, self.total, self.done = "", 0, 0
        self.current: dict[int, PhaseStarted] = {}
        self.outcomes: Counter[str] = Counter()
        self.last: ResultRow | None = None
        self.restarts: list[WorkerRestarted] = []
        self.started_s = time.monotonic()
        self._remaining: tuple[float, float] | None = None

    def take(self, event: Event) -> None:
        """Bring the tally up to date."""
        match event:
            case SweepStarted(run, total, already_done):
                self.run, self.total, self.done = run, total, already_done
            case PhaseStarted():
                self.current[event.slot] = event
            case CaseFinished():
                self._finished(event)
            case WorkerRestarted():
                self.restarts.append(event)
                self.current.pop(event.slot, None)
            case SweepFinished():
                self.current.clear()

    def _finished(self, event: CaseFinished) -> None:
        self.done, self.total, self.last = event.done, event.total, event.row
        self.outcomes[event.row.outcome] += 1
        self.current.pop(event.row.device_slot, None)
        self._remaining = None if event.remaining_s is None else (event.remaining_s, time.monotonic())

    @property
    def left_s(self) -> float | None:
        """Predicted seconds left, counted down since the last case finished; ``None`` before the first."""
        if self._remaining is None:
            return None
        predicted_s, at_s = self._remaining
        return max(0.0, predicted_s - (time.monotonic() - at_s))

    @property
    def outcome_words(self) -> str:
        """``12 ok, 1 timeout``."""
        return ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in self.outcomes.items())


class Lines:
    """One line for each finished case and each restarted worker; flushed, so that a log can be followed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._tally = Tally()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def __call__(self, event: Event) -> None:
        self._tally.take(event)
        line = self._line(event)
        if line is not None:
            self._stream.write(line + "\n")
            self._stream.flush()

    def _line(self, event: Event) -> str | None:
        match event:
            case SweepStarted(run, total, already_done):
                kept = f", {already_done} of them already done" if already_done else ""
                return f"run {run}: {total} cases{kept}"
            case CaseFinished(row, done, total, remaining_s):
                left = f", {span(remaining_s)} left" if remaining_s is not None and done < total else ""
                return f"[{done:>{len(str(total))}}/{total}] {case_title(row)}: {result_words(row)}{left}"
            case WorkerRestarted(slot, reason):
                return f"worker of device {slot} restarted: {reason}"
            case SweepFinished(_, status, reason) if reason:
                return f"{status}: {reason}"
        return None
