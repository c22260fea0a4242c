"""Cases of one workload measured in alternating rounds, and what happens when one of them brings a worker down."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from suite.events import PhaseStarted
from suite.launcher.death import Death
from suite.launcher.examine import examined
from suite.launcher.happenings import CaseEnded, Happening
from suite.launcher.process import WorkerLost
from suite.launcher.seat import CannotStart, Seat
from suite.measurement import TIMED, Measurement
from suite.outcome import Outcome
from suite.planned import PlannedCase
from suite.protocol import CaseReply, Drop, Ended, Failed, Finish, Prepare, Ready, Round


@dataclass(eq=False)
class Turn:
    """One case under way on a seat, with the time it has had so far, in all and by phase."""

    planned: PlannedCase
    ticket: int
    seat: Seat
    ready: Ready | None = None
    elapsed_s: float = 0.0
    phases_s: dict[str, float] = field(default_factory=dict)

    def ask(self, request: Prepare | Round | Finish, phase: str, announce: Callable[[str], None]) -> CaseReply:
        """Ask the seat, keeping time."""
        began = phase_began = time.monotonic()

        def enter(name: str) -> None:
            nonlocal phase, phase_began
            phase_began = self._spent(phase, phase_began)
            phase = name
            announce(name)

        try:
            return self.seat.ask(request, phase, self.planned, enter)
        finally:
            self.elapsed_s += self._spent(phase, phase_began) - began

    def _spent(self, phase: str, since: float) -> float:
        now = time.monotonic()
        self.phases_s[phase] = self.phases_s.get(phase, 0.0) + now - since
        return now


class Stumbled(Exception):
    """A case failed in a way that others may have a part in: the worker is lost, or memory did not suffice for all."""

    def __init__(self, turn: Turn, death: Death) -> None:
        super().__init__(death.reason)
        self.turn, self.death = turn, death


class Cohort:
    """Measures its members together.  Whoever has no result when ``run`` returns is in ``waiting``, to be run again.

    ``apart`` is why a single member is not measured in the company it was planned in; it is kept with the result.
    """

    def __init__(
        self, members: Sequence[PlannedCase], seats: Mapping[int, Seat], tell: Callable[[Happening], None], apart: str = ""
    ) -> None:
        self.waiting = list(members)
        self._apart = apart
        self._seats = seats
        self._tell = tell
        self._under_way: list[Turn] = []

    def run(self, rounds: int, seed_of: Callable[[PlannedCase], int]) -> Stumbled | None:
        """Measure in ``rounds`` alternating rounds; return who stumbled in company and must be run apart, if one did.

        A member alone is measured until its stopping rule ends it, and has its result whatever happens.
        """
        company = len(self.waiting) > 1
        rounds = rounds if company else 1
        try:
            self._prepare(rounds, seed_of)
            for index in range(rounds):
                # The order turns round by round, so that whoever runs first in one runs last in the next.
                for turn in self._under_way[:: -1 if index % 2 else 1]:
                    self._step(turn, Round(turn.ticket, index), "measure")
            for turn in list(self._under_way):
                self._step(turn, Finish(turn.ticket), "verify")
        except Stumbled as stumbled:
            if company and stumbled.death.outcome is not Outcome.TIMEOUT:
                self._drop_others(stumbled.turn)
                return stumbled
            self._end(stumbled.turn, _without_samples(stumbled.turn, stumbled.death))
            self._drop_others(stumbled.turn)
        return None

    def _prepare(self, rounds: int, seed_of: Callable[[PlannedCase], int]) -> None:
        for planned in list(self.waiting):
            seat = self._seats[planned.slot]
            turn = Turn(planned, seat.ticket(), seat)
            try:
                turn.ready = turn.seat.ready()
            except CannotStart as error:
                self._end(turn, _without_samples(turn, error.death))
                continue
            self._under_way.append(turn)
            order = Prepare(turn.ticket, planned.case, planned.sets, planned.tolerance, seed_of(planned), rounds)
            self._step(turn, order, "compile")

    def _step(self, turn: Turn, request: Prepare | Round | Finish, phase: str) -> None:
        """Ask for one step; tell the end of the case when it is one, and raise ``Stumbled`` when others are concerned."""
        try:
            answer = turn.ask(request, phase, lambda name: self._announce(turn, name))
        except WorkerLost as lost:
            raise Stumbled(turn, lost.death) from None
        match answer:
            case Ended(_, measurement):
                self._end(turn, examined(measurement))
            case Failed(_, outcome, reason, fatal):
                death = Death(outcome if outcome not in TIMED else Outcome.ERROR, str(reason))
                if fatal or death.outcome is Outcome.OUT_OF_MEMORY:
                    raise Stumbled(turn, death)
                self._end(turn, _without_samples(turn, death))

    def _announce(self, turn: Turn, phase: str) -> None:
        self._tell(PhaseStarted(turn.planned.slot, turn.planned.case, phase))

    def _end(self, turn: Turn, measurement: Measurement) -> None:
        self.waiting.remove(turn.planned)
        if turn in self._under_way:
            self._under_way.remove(turn)
        if self._apart:
            measurement = replace(measurement, description={**measurement.description, "apart": self._apart})
        self._tell(CaseEnded(turn.planned, measurement, turn.ready, turn.elapsed_s))

    def _drop_others(self, culprit: Turn) -> None:
        """Free what the others hold in workers that are still there; a worker lost on the way frees everything."""
        for turn in self._under_way:
            if turn is culprit or turn.ready is None or not turn.seat.occupied:
                continue
            try:
                turn.seat.ask(Drop(turn.ticket), "verify", turn.planned, lambda _: None)
            except WorkerLost:
                continue
        self._under_way.clear()


def _without_samples(turn: Turn, death: Death) -> Measurement:
    return Measurement(death.outcome, death.reason, phases_s=turn.phases_s)
