"""Looks through a seat: what is held in its worker, and what becomes of it when memory or the worker gives out."""

from itertools import count
from typing import Any

import pytest

from suite.backend import DeviceInfo
from suite.jobs.gemm import GemmSettings
from suite.jobs.shapes import Shape
from suite.launcher.death import Death
from suite.launcher.process import WorkerLost
from suite.launcher.seat import CannotStart
from suite.measure.look import Glimpse
from suite.outcome import Outcome
from suite.plan import data_seed
from suite.planned import DeviceSlot
from suite.protocol import Advanced, Drop, Failed, Glance, LookAt, Looked
from suite.search.hunt import Missing
from suite.search.looker import Looker
from suite.search.subject import Subject, subjects
from suite.settings import RunConfig, SearchSettings

SIDES = [Shape(1024, 1024, 1024 * number) for number in range(1, 9)]
GIB = 2**30


def subject(memory_bytes: int = 64 * GIB) -> Subject:
    info = DeviceInfo("fake", 0, "Simulated Accelerator", "s0", memory_bytes, visible_units=100)
    config = RunConfig(jobs={"gemm": GemmSettings(formats=["bf16"])}, search=SearchSettings())
    (found,) = subjects(config, [DeviceSlot(0, "fake", "a:B", info)])
    return found


class ScriptedSeat:
    """Answers every request; ``room`` is how many candidates its device has memory for."""

    def __init__(self, room: int = 100) -> None:
        self.room, self.held, self.log = room, set[int](), list[Any]()
        self.lost_at: type | None = None
        self.unstartable = self.unsupported = ""
        self.occupied = True
        self._tickets = count()

    def ready(self) -> None:
        if self.unstartable:
            raise CannotStart(Death(Outcome.ERROR, self.unstartable))

    def ticket(self) -> int:
        return next(self._tickets)

    def ask(self, request: Any, phase: str, planned: Any, announce: Any) -> Any:
        self.log.append(request)
        if self.lost_at is type(request):
            self.held.clear()
            self.lost_at = None
            raise WorkerLost(Death(Outcome.CRASHED, "it is gone"))
        match request:
            case LookAt(ticket) if self.unsupported:
                return Failed(ticket, Outcome.UNSUPPORTED, self.unsupported, fatal=False)
            case LookAt(ticket) if len(self.held) >= self.room:
                return Failed(ticket, Outcome.OUT_OF_MEMORY, "no room", fatal=False)
            case LookAt(ticket):
                self.held.add(ticket)
                return Advanced(ticket)
            case Glance(ticket):
                assert ticket in self.held, "it was freed, or lost"
                return Looked(ticket, Glimpse((1000,), 1))
            case Drop(ticket):
                self.held.remove(ticket)
                return Advanced(ticket)

    def made_ready(self) -> int:
        return sum(isinstance(request, LookAt) for request in self.log)


def looker(seat: ScriptedSeat, memory_bytes: int = 64 * GIB, over: bool = False) -> Looker:
    return Looker(seat, subject(memory_bytes), lambda: over)  # type: ignore[arg-type]


def test_a_candidate_is_made_ready_once_and_looked_at_often() -> None:
    seat = ScriptedSeat()
    through = looker(seat)
    for _ in range(3):
        for shape in SIDES:
            assert through.look(shape, 0.01) == Glimpse((1000,), 1)
    assert seat.made_ready() == len(SIDES)


def test_no_look_sees_the_data_that_its_shape_is_measured_on() -> None:
    seat, searched = ScriptedSeat(), subject()
    through = Looker(seat, searched, lambda: False)  # type: ignore[arg-type]
    for shape in SIDES:
        through.look(shape, 0.01)
    looks = [request for request in seat.log if isinstance(request, LookAt)]
    assert len(looks) == len(SIDES)
    for look in looks:
        assert look.seed != data_seed(searched.config.seed, look.case.workload.key)


def test_those_that_do_not_go_on_are_freed() -> None:
    seat = ScriptedSeat()
    through = looker(seat)
    for shape in SIDES:
        through.look(shape, 0.01)
    through.keep(SIDES[:2])
    assert len(seat.held) == 2
    through.keep(())
    assert not seat.held


def test_no_more_is_held_than_half_of_the_memory_has_room_for() -> None:
    """All of these take 168 MB; the device has 300."""
    seat = ScriptedSeat()
    through = looker(seat, memory_bytes=300_000_000)
    for _ in range(2):
        for shape in SIDES:
            assert isinstance(through.look(shape, 0.01), Glimpse)
    assert seat.made_ready() > len(SIDES)
    assert 1 < len(seat.held) < len(SIDES) + 1
    assert sum(2 * (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n) for shape in SIDES[: len(seat.held)]) < 150e6


def test_one_that_finds_no_memory_tries_again_alone() -> None:
    seat = ScriptedSeat(room=3)
    through = looker(seat)
    assert all(isinstance(through.look(shape, 0.01), Glimpse) for shape in SIDES)
    assert len(seat.held) <= 3


def test_one_that_finds_no_memory_even_alone_says_so() -> None:
    assert looker(ScriptedSeat(room=0)).look(SIDES[0], 0.01) == "out_of_memory: no room"


@pytest.mark.parametrize("lost_at", [LookAt, Glance])
def test_who_brings_the_worker_down_falls_out_and_the_others_are_made_ready_again(lost_at: type) -> None:
    seat = ScriptedSeat()
    through = looker(seat)
    through.look(SIDES[0], 0.01)
    seat.lost_at = lost_at
    said = through.look(SIDES[1], 0.01)
    assert isinstance(said, str)
    assert "it is gone" in said
    assert isinstance(through.look(SIDES[0], 0.01), Glimpse)


def test_a_worker_that_cannot_be_started_is_the_reason() -> None:
    seat = ScriptedSeat()
    seat.unstartable = "no such backend"
    assert looker(seat).look(SIDES[0], 0.01) == "error: no such backend"


def test_once_the_run_is_over_nothing_more_is_asked() -> None:
    seat = ScriptedSeat()
    through = looker(seat)
    through.look(SIDES[0], 0.01)
    through._over = lambda: True
    through.keep(())
    assert not any(isinstance(request, Drop) for request in seat.log)


def test_what_the_device_does_not_offer_is_told_from_what_went_wrong() -> None:
    seat = ScriptedSeat()
    seat.unsupported = "no unit for it"
    assert looker(seat).look(SIDES[0], 0.1) == Missing("unsupported: no unit for it")
    assert isinstance(looker(ScriptedSeat(room=0)).look(SIDES[0], 0.1), str)
