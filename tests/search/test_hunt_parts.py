"""A hunt in several parts, and of what the device does not offer: what is kept, what is given up, and what is counted."""

import json
import math

import pytest

from suite.jobs.shapes import Shape
from suite.measure.look import Glimpse
from suite.search.hunt import MISSING, Allowance, Hunt, Missing, Stage
from suite.search.standings import READY, Standings
from tests.search.scripted import BUDGET_S, Scripted, best_of, field, hunted, landscape


def in_parts(viewer: Scripted, shapes: list[Shape], allowance: Allowance, looks: int, most: int = 400) -> tuple[Standings, int]:
    """A hunt that is ended politely after so many looks, and goes on as a new process until it is over; how many parts."""
    kept = Standings()
    for part in range(1, most):
        until = len(viewer.looks) + looks
        viewer.held.clear()
        over = lambda until=until: len(viewer.looks) >= until  # noqa: E731
        kept = Hunt(shapes, viewer, allowance, over=over, clock=viewer.clock, standings=kept).run()
        kept = Standings.from_json(json.loads(json.dumps(kept.to_json())))
        if kept.are_final(burst=bool(allowance.window_s)):
            return kept, part
    pytest.fail(f"after {most} parts it was still in {kept.under_way and kept.under_way.name}")


@pytest.mark.parametrize("looks", [3, 7, 20])
def test_a_hunt_that_is_ended_within_each_stage_still_comes_to_its_end(looks: int) -> None:
    """Each part warms up and heats the device up with a look of its own, and adds at least one that counts."""
    shapes, rates = landscape(8)
    shapes = sorted(shapes, key=lambda shape: rates[shape])[-13:]
    viewer = Scripted(lambda shape, *_: rates[shape])
    ended, parts = in_parts(viewer, shapes, Allowance(BUDGET_S, window_s=0.005), looks)
    assert parts > 1
    assert ended.ranking[0].shape == ended.burst_ranking[0].shape == best_of(rates)
    assert len(ended.contenders) == len({each.shape for each in ended.contenders})


def test_looks_of_two_parts_are_compared_though_the_device_was_slower_in_one() -> None:
    """What is left of a round is looked at by four fifths of the clock: by rates alone none of it would go on."""
    shapes, rates = landscape(9)
    share, until = [1.0], [math.inf]
    viewer = Scripted(lambda shape, *_: rates[shape] * share[0])

    def tell(stage: Stage, standings: Standings) -> None:
        until[0] = len(viewer.looks) + 20 if stage.name == "0" else math.inf

    kept = Hunt(shapes, viewer, Allowance(BUDGET_S), tell, lambda: len(viewer.looks) >= until[0], clock=viewer.clock).run()
    assert kept.under_way is not None
    assert 0 < len(kept.under_way.turns[0]) < len(shapes)
    share[0] = 0.8
    ended = Hunt(shapes, viewer, Allowance(BUDGET_S), clock=viewer.clock, standings=kept).run()
    assert ended.ranking[0].shape == best_of(rates)
    stood = {each.shape: each.standings["0"][1] for each in ended.contenders}
    assert sorted(stood, key=lambda shape: -stood[shape]) == sorted(shapes, key=lambda shape: -rates[shape])


def test_what_is_kept_of_half_a_stage_is_no_rate() -> None:
    shapes, rates = landscape(7)
    viewer = Scripted(lambda shape, *_: rates[shape])
    kept = Hunt(shapes, viewer, Allowance(BUDGET_S), over=lambda: len(viewer.looks) >= 100, clock=viewer.clock).run().to_json()
    looked = [each for turn in kept["under_way"]["turns"] for *_, each in turn]
    assert looked
    assert all(abs(each) < math.log(2) for each in looked)


def test_a_format_that_the_device_does_not_offer_is_given_up_at_once() -> None:
    class Lacking(Scripted):
        def look(self, shape: Shape, seconds: float, idle_s: float = 0.0) -> Missing:  # type: ignore[override]
            self.looks.append((shape, seconds, idle_s))
            return Missing("unsupported: no tf32")

    viewer, stages = Lacking(lambda *_: 0.8), list[str]()
    hunt = Hunt(
        field(), viewer, Allowance(BUDGET_S, window_s=0.005), lambda stage, _: stages.append(stage.name), clock=viewer.clock
    )
    ended = hunt.run()
    assert len(viewer.looks) == MISSING
    assert stages == [READY]
    assert ended.are_final(burst=True)
    assert {each.fallen for each in ended.contenders} == {"unsupported: no tf32"}


def test_a_shape_that_is_not_offered_ends_no_hunt() -> None:
    shapes = field(12)

    class Lacking(Scripted):
        def look(self, shape: Shape, seconds: float, idle_s: float = 0.0) -> object:  # type: ignore[override]
            return Missing("unsupported: too small") if shape in shapes[:2] else super().look(shape, seconds, idle_s)

    ended = hunted(Lacking(lambda *_: 0.8), shapes)
    assert len(ended.able) == 10


def test_a_round_counts_those_that_are_still_in() -> None:
    shapes = field(20)
    viewer = Scripted(lambda *_: 0.8, fails=dict.fromkeys(shapes[:12], "crashed: it is gone"))
    told: list[int] = []
    Hunt(shapes, viewer, Allowance(BUDGET_S), lambda stage, _: told.append(stage.contenders), clock=viewer.clock).run()
    assert told == [0, 8, 4]


def test_nor_does_it_count_those_that_fell_out_in_the_round_before() -> None:
    shapes = field(8)

    class Failing(Scripted):
        def look(self, shape: Shape, seconds: float, idle_s: float = 0.0) -> Glimpse | str:
            if len(self.looks) > 10 and shape in shapes[2:]:
                return "crashed: it is gone"
            return super().look(shape, seconds, idle_s)

    viewer, told = Failing(lambda *_: 0.8), list[int]()
    Hunt(shapes, viewer, Allowance(BUDGET_S), lambda stage, _: told.append(stage.contenders), clock=viewer.clock).run()
    assert told == [0, 8, 2]


def test_a_part_that_ends_before_a_look_counts_says_so_and_one_that_goes_on_does_not() -> None:
    """Making the first candidate of a round ready takes all the time of the part."""
    shapes, rates = landscape(4)
    viewer = Scripted(lambda shape, *_: rates[shape])
    whole = Allowance(BUDGET_S)
    half = Hunt(shapes, viewer, whole, over=lambda: len(viewer.looks) >= 70, clock=viewer.clock).run()
    assert not half.stalled
    for looks, stalled in ((1, True), (10, False)):
        until = len(viewer.looks) + looks
        over = lambda until=until: len(viewer.looks) >= until  # noqa: E731
        half = Hunt(shapes, viewer, whole, over=over, clock=viewer.clock, standings=half).run()
        assert Standings.from_json(half.to_json()).stalled is stalled


def test_who_is_found_wanting_as_time_runs_out_is_not_asked_again() -> None:
    shapes = field(6)
    viewer = Scripted(lambda *_: 0.8, fails={shapes[2]: "timeout: it hung"}, fails_s=50.0)
    half = Hunt(shapes, viewer, Allowance(BUDGET_S), over=lambda: viewer.clock() > 40.0, clock=viewer.clock).run()
    assert [each.fallen for each in half.contenders] == ["", "", "timeout: it hung"]
    again = Scripted(lambda *_: 0.8, fails={shapes[2]: "timeout: it hung"}, fails_s=50.0)
    Hunt(shapes, again, Allowance(BUDGET_S), clock=again.clock, standings=half).run()
    assert again.clock() < 50.0
