"""One physical device: the seats that share it take turns, one request at a time."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Event as Flag
from typing import NamedTuple

from suite.case import Regime
from suite.launcher.cohort import Cohort
from suite.launcher.death import Death
from suite.launcher.happenings import CaseEnded, Happening, LaneEnded
from suite.launcher.quest import Desk, Quest
from suite.launcher.seat import CannotStart, Seat
from suite.planned import PlannedCase
from suite.protocol import Ready

Seeds = Callable[[PlannedCase], int]


class Company(NamedTuple):
    """Cases to be measured together, and why a single one is not in the company it was planned in."""

    members: tuple[PlannedCase, ...]
    apart: str = ""


class Lane:
    """Runs its cases in order.  ``stopping`` is set when the launcher is about to kill the workers."""

    def __init__(self, seats: Mapping[int, Seat], tell: Callable[[Happening], None], stopping: Flag) -> None:
        self.seats = seats
        self._tell = tell
        self._stopping = stopping

    def ready(self) -> dict[int, Ready | Death]:
        """Wait for a worker on every seat; where none can be started, say why."""
        return {slot: self._ready(seat) for slot, seat in self.seats.items()}

    def run(
        self, cases: Sequence[PlannedCase], rounds: int, seed_of: Seeds, until: float | None, quests: Sequence[Quest] = ()
    ) -> None:
        """Measure every case of this lane, telling each end, then go on its quests; begin nothing after ``until``.

        Never raises: see ``LaneEnded``.
        """
        error: BaseException | None = None
        try:
            for company in companies([case for case in cases if case.slot in self.seats], rounds):
                if self._over(until):
                    break
                self._measure(company, rounds, seed_of, until)
            for quest in quests:
                if quest.slot in self.seats and not self._over(until):
                    quest.run(self._desk(quest.slot, seed_of, until))
            if not self._stopping.is_set():
                self.close()
        except BaseException as raised:
            error = raised
        self._tell(LaneEnded(error))

    def close(self) -> None:
        """Let the workers leave; not while ``run`` is under way in another thread."""
        for seat in self.seats.values():
            seat.close()

    def kill(self) -> None:
        """Kill the workers from another thread."""
        for seat in self.seats.values():
            seat.kill()

    def _desk(self, slot: int, seed_of: Seeds, until: float | None) -> Desk:
        def measure(planned: PlannedCase) -> CaseEnded | None:
            ended: list[CaseEnded] = []

            def tell(happening: Happening) -> None:
                ended.extend([happening] if isinstance(happening, CaseEnded) else [])
                self._tell(happening)

            Cohort([planned], self.seats, tell).run(1, seed_of)
            return ended[0] if ended and not self._stopping.is_set() else None

        return Desk(self.seats[slot], self._tell, measure, lambda: self._over(until))

    def _measure(self, company: Company, rounds: int, seed_of: Seeds, until: float | None) -> None:
        """Measure a company until each member has its result.

        When one stumbles the others are measured again without it, together, and it alone, afterwards: every stumble
        makes the companies smaller, so that this ends, and who brings down a worker alone is not tried again.
        """
        queue = deque([company])
        while queue and not self._over(until):
            members, apart = queue.popleft()
            cohort = Cohort(members, self.seats, self._tell, apart)
            stumbled = cohort.run(rounds, seed_of)
            suspect = stumbled.turn.planned if stumbled else None
            others = tuple(case for case in cohort.waiting if case is not suspect)
            if others:
                queue.append(Company(others, apart))
            if stumbled and suspect:
                queue.append(Company((suspect,), f"in company: {stumbled.death.outcome}: {stumbled.death.reason}"))

    @staticmethod
    def _ready(seat: Seat) -> Ready | Death:
        try:
            return seat.ready()
        except CannotStart as error:
            return error.death

    def _over(self, until: float | None) -> bool:
        return self._stopping.is_set() or (until is not None and time.monotonic() >= until)


def companies(cases: Sequence[PlannedCase], rounds: int) -> Iterator[Company]:
    """Each case alone and in order; with alternating rounds, one workload's together where the first of them stood."""
    if rounds == 1:
        yield from (Company((case,)) for case in cases)
        return
    cohorts: dict[tuple[int, str, Regime], list[PlannedCase]] = {}
    for case in cases:
        cohorts.setdefault((case.cohort, case.case.workload.key, case.case.regime), []).append(case)
    yield from (Company(tuple(members)) for members in cohorts.values())
