"""What every display of a sweep knows, and the words for how a case ended."""

import time
from collections import Counter
from collections.abc import Mapping

from suite.events import CaseFinished, Event, PhaseStarted, SearchRound, SweepFinished, SweepStarted, WorkerRestarted
from suite.report.derived import roof_name
from suite.report.words import duration, percent, rate_unit, si
from suite.rows import ResultRow
from suite.show.results import remark

PHASE_WORDS = {"compile": "preparing", "verify": "checking", "measure": "measuring"}


def result_words(row: ResultRow) -> str:
    """How a case ended: ``1.63 ms, 92.1 % of the compute roof``, or its outcome and reason."""
    if row.p50_s is None:
        return remark(row)
    best, roof = _fraction(row)
    share = f", {percent(best)} of {roof}" if best is not None else ""
    bound = f", {row.bound} bound" if row.bound else ""
    trust = f" ({remark(row)})" if remark(row) else ""
    return f"{duration(row.p50_s)}{share}{bound}{trust}"


def search_words(event: SearchRound, on: str = "") -> str:
    """``search gemm bf16 library: round 2 of 5, 22 candidates; ahead 8192x11264x6144, about 701 TFLOP/s (unverified)``."""
    doing = f"round {event.number} of {event.of}, {event.contenders} candidates" if event.number else "making candidates ready"
    known = event.about_flop_s is not None
    about = f", about {si(event.about_flop_s, rate_unit(event.format))} (unverified)" if known else ""
    return f"search {event.subject}{on}: {doing}{f'; ahead {event.ahead}{about}' if event.ahead else ''}"


def _fraction(row: ResultRow) -> tuple[float | None, str]:
    """Against the spec sheet where there is one, else against what this device has been measured to do."""
    if row.fractions.spec is not None:
        return row.fractions.spec, roof_name(row)
    return row.fractions.empirical, "the empirical roof"


class Tally:
    """What both displays know: how many are done, what each slot is doing, how cases ended, how long is left."""

    def __init__(self) -> None:
        self.run, self.total, self.done = "", 0, 0
        self._devices: Mapping[int, str] = {}
        self.current: dict[int, PhaseStarted | SearchRound] = {}
        self.outcomes: Counter[str] = Counter()
        self.last: ResultRow | None = None
        self.restarts: list[WorkerRestarted] = []
        self.started_s = time.monotonic()
        self._remaining: tuple[float, float] | None = None

    def take(self, event: Event) -> None:
        """Bring the tally up to date."""
        match event:
            case SweepStarted(run, total, already_done, devices):
                self.run, self.total, self.done, self._devices = run, total, already_done, devices
            case PhaseStarted() | SearchRound():
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

    def device(self, slot: int) -> str:
        """``device 1``, in a run on several with what tells it apart: ``device 1 (xla)``."""
        return f"device {slot} ({self._devices[slot]})" if slot in self._devices else f"device {slot}"

    def on(self, slot: int) -> str:
        """`` on device 1 (xla)`` in a run on several devices, behind what would read alike for all of them; else nothing."""
        return f" on {self.device(slot)}" if self._devices else ""

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
