"""Looks through a seat: which candidates its worker holds ready, and what becomes of those that it cannot hold or serve."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from suite.jobs.registry import find
from suite.jobs.shapes import Shape
from suite.launcher.process import WorkerLost
from suite.launcher.seat import CannotStart, Seat
from suite.measure.look import Glimpse
from suite.outcome import Outcome
from suite.plan import data_seed
from suite.planned import PlannedCase
from suite.protocol import CaseRequest, Drop, Failed, Glance, LookAt, Looked
from suite.search.hunt import Missing
from suite.search.memory import room_bytes
from suite.search.subject import Subject

LOOK_SEED = 0x100C  # looks see other data than the measurement that follows


@dataclass
class _Held:
    ticket: int
    planned: PlannedCase
    bytes_: int


class Looker:
    """See ``suite.search.hunt.Viewer``.  ``over`` says that the run has ended: what a killed worker says is nobody's fault."""

    def __init__(self, seat: Seat, subject: Subject, over: Callable[[], bool]) -> None:
        self._seat, self._subject, self._over = seat, subject, over
        self._held: dict[Shape, _Held] = {}
        info = subject.slot.info
        self._room_bytes = room_bytes(info.memory_bytes if info else 0)

    def look(self, shape: Shape, seconds: float, idle_s: float = 0.0) -> Glimpse | Missing | str:
        """Prepare the candidate unless it is held, and look; one that finds no memory tries again with nothing held beside."""
        failed = self._ready(shape) if shape not in self._held else None
        if failed is not None and failed.outcome is Outcome.OUT_OF_MEMORY and self._held:
            self.keep(())
            failed = self._ready(shape)
        if failed is not None:
            return self._said(failed)
        held = self._held[shape]
        answer = self._ask(Glance(held.ticket, seconds, idle_s), "measure", held.planned)
        if isinstance(answer, str):
            return answer
        if isinstance(answer, Failed):
            self._held.pop(shape, None)
            return self._said(answer)
        if sum(each.bytes_ for each in self._held.values()) > self._room_bytes:
            self._drop(shape)
        assert isinstance(answer, Looked), "a glance is answered with a look, or with why there is none"
        return answer.glimpse

    def keep(self, shapes: Sequence[Shape]) -> None:
        """Free what every other candidate holds."""
        for shape in [shape for shape in self._held if shape not in shapes]:
            self._drop(shape)

    def _ready(self, shape: Shape) -> Failed | None:
        """Make a candidate ready; what kept it from being so, else ``None``."""
        planned = self._subject.look(shape)
        case = planned.case
        try:
            self._seat.ready()
        except CannotStart as error:
            return Failed(0, error.death.outcome, error.death.reason, fatal=True)
        ticket = self._seat.ticket()
        seed = data_seed(self._subject.config.seed ^ LOOK_SEED, case.workload.key)
        answer = self._ask(LookAt(ticket, case, seed), "compile", planned)
        if isinstance(answer, str):
            return Failed(ticket, Outcome.CRASHED, answer, fatal=True)
        if isinstance(answer, Failed):
            return answer
        footprint = find(case.workload.job).footprint(case.workload, case.switches)
        self._held[shape] = _Held(ticket, planned, footprint.set_bytes + footprint.emulation_bytes)
        return None

    def _ask(self, request: CaseRequest, phase: str, planned: PlannedCase) -> object:
        """The answer; the reason where the worker was lost, and with it everything that was held."""
        try:
            answer = self._seat.ask(request, phase, planned, lambda _: None)
        except WorkerLost as lost:
            self._held.clear()
            return lost.death.reason
        if isinstance(answer, Failed) and answer.fatal:
            self._held.clear()
        return answer

    def _drop(self, shape: Shape) -> None:
        held = self._held.pop(shape)
        if not self._over() and self._seat.occupied:
            self._ask(Drop(held.ticket), "verify", held.planned)

    @staticmethod
    def _said(failed: Failed) -> Missing | str:
        said = f"{failed.outcome.value}: {failed.reason}"
        return Missing(said) if failed.outcome is Outcome.UNSUPPORTED else said
