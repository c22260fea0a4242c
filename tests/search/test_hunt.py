"""Successive halving: what it finds, what it costs, and what does not mislead it."""

import json
import math
from functools import partial
from itertools import count

import pytest

from suite.jobs.shapes import Shape
from suite.measure.look import BRIEF_S
from suite.search.hunt import BURST_FIELD, LEAST_CANDIDATES, Allowance, Hunt, Stage
from suite.search.standings import BURST, LAST_ROUND, Standings, round_sizes
from tests.search.scripted import BUDGET_S, FLOP_S, Scripted, Stepping, best_of, field, hunted, landscape


def test_the_planted_best_is_found_and_most_of_the_time_goes_to_its_rivals() -> None:
    """A scan with as many launches of each would take ten times as many."""
    shapes, rates = landscape(3)
    viewer = Scripted(lambda shape, *_: rates[shape])
    assert hunted(viewer, shapes).ranking[0].shape == best_of(rates)
    looked_s = {shape: sum(seconds for each, seconds, _ in viewer.looks if each == shape) for shape in shapes}
    assert len(shapes) * looked_s[best_of(rates)] > 10 * sum(looked_s.values()) / 2
    assert sorted(looked_s.values())[len(looked_s) // 2] < looked_s[best_of(rates)] / 20


def test_noise_of_one_percent_hardly_ever_drops_the_best() -> None:
    kept = won = 0
    for seed in range(100):
        shapes, rates = landscape(seed)
        ranking = hunted(Scripted(partial(lambda at, shape, *_: at[shape], rates), 0.01, seed), shapes).ranking
        places = [each.shape for each in ranking].index(best_of(rates))
        kept += places < 3
        won += places == 0
    assert kept >= 95
    assert won >= 70


def test_the_same_looks_have_the_same_outcome() -> None:
    shapes, rates = landscape(1)
    first, second = (hunted(Scripted(lambda shape, *_: rates[shape], 0.01, seed=7), shapes).to_json() for _ in range(2))
    assert first == second


@pytest.mark.parametrize("window_s", [0.0, 0.01])
def test_it_ends_when_its_time_is_used(window_s: float) -> None:
    shapes, rates = landscape(2)
    viewer = Scripted(lambda shape, *_: rates[shape])
    hunted(viewer, shapes, window_s=window_s)
    assert viewer.clock() == pytest.approx(BUDGET_S, rel=0.1)


def test_the_warm_up_is_not_of_its_time() -> None:
    shapes, rates = landscape(2)
    viewer = Scripted(lambda shape, *_: rates[shape])
    standings = hunted(viewer, shapes, warm_up_s=5.0)
    assert viewer.clock() == pytest.approx(5.0 + BUDGET_S, rel=0.05)
    assert standings.spent_s == pytest.approx(BUDGET_S, rel=0.1)


@pytest.mark.parametrize("warm_up_s", [0.0, 5.0])
def test_what_a_process_takes_to_start_is_not_of_its_time(warm_up_s: float) -> None:
    """Nor does it leave time for fewer candidates; a second candidate's preparing is of the time."""
    shapes, rates = landscape(2)
    swift, slow = (Scripted(lambda shape, *_: rates[shape], start_s=start_s) for start_s in (0.0, 3.0))
    first, second = (hunted(viewer, shapes, warm_up_s=warm_up_s) for viewer in (swift, slow))
    assert slow.clock() == pytest.approx(swift.clock() + 3.0, abs=0.02)
    assert second.spent_s == pytest.approx(first.spent_s, abs=0.02)
    assert len(first.contenders) == len(second.contenders) == len(shapes)


def test_the_start_is_off_the_time_once() -> None:
    """Candidates that each bring the worker down do not make a search endless."""
    shapes = field()
    viewer = Scripted(lambda *_: 0.8, fails=dict.fromkeys(shapes[:20], "crashed: it is gone"), fails_s=0.2)
    standings = hunted(viewer, shapes)
    assert viewer.clock() < 0.2 * 20 + BUDGET_S
    assert sum(not each.fallen for each in standings.contenders) == LEAST_CANDIDATES


def test_a_hunt_that_goes_on_warms_up_again() -> None:
    shapes, rates = landscape(5)
    over = [False]
    first = Scripted(lambda shape, *_: rates[shape])
    stages: list[str] = []

    def tell(stage: Stage, standings: Standings) -> None:
        stages.append(stage.name)
        over[0] = stage.name == "2"

    half = Hunt(shapes, first, Allowance(BUDGET_S, 5.0), tell, lambda: over[0], clock=first.clock).run()
    assert half.done == ["ready", "0", "1"]
    spent_s, again = half.spent_s, Scripted(lambda shape, *_: rates[shape])
    Hunt(shapes, again, Allowance(BUDGET_S, 5.0), clock=again.clock, standings=half).run()
    assert again.clock() == pytest.approx(5.0 + BUDGET_S - spent_s, abs=0.1)


def test_who_brings_a_hunt_down_that_goes_on_is_asked_once() -> None:
    shapes, rates = landscape(5)
    half = hunted(Scripted(lambda shape, *_: rates[shape]), shapes)
    half.done.remove("4")
    leader = half.ranking[0].shape
    again = Scripted(lambda shape, *_: rates[shape], fails={leader: "crashed: it is gone"}, fails_s=100.0)
    ended = Hunt(shapes, again, Allowance(BUDGET_S), clock=again.clock, standings=half).run()
    assert again.clock() == pytest.approx(100.0, abs=BUDGET_S)
    assert ended.ranking[-1].shape == leader
    assert ended.are_final(burst=False)


def test_where_making_ready_takes_long_all_of_it_is_done_before_the_rounds() -> None:
    """A brief look may leave out what a long one needs; where that takes long, it would be missing in a round."""
    for ready_s, briefly in ((0.002, True), (0.05, False)):
        viewer = Scripted(lambda *_: 0.8, ready_s=ready_s)
        contenders = len(hunted(viewer, field()).contenders)
        firsts = [seconds for _, seconds, _ in viewer.looks[:contenders]]
        assert firsts[:2] == [BRIEF_S] * 2
        assert (firsts[2] < BRIEF_S) == briefly


def test_who_leads_is_not_always_looked_at_first() -> None:
    """What a device can do for a moment after a pause is no candidate's own."""
    shapes, rates = landscape(3)
    viewer, begun = Scripted(lambda shape, *_: rates[shape]), list[tuple[int, Shape]]()

    def tell(stage: Stage, standings: Standings) -> None:
        if stage.name.isdigit() and stage.name != "0":
            begun.append((len(viewer.looks), standings.ranking[0].shape))

    Hunt(shapes, viewer, Allowance(BUDGET_S), tell, clock=viewer.clock).run()
    heated = [viewer.looks[at][0] for at, _ in begun]
    first = [viewer.looks[at + 1][0] for at, _ in begun]
    assert heated == [leader for _, leader in begun]
    assert first != heated


def test_steps_of_a_clock_count_by_how_long_they_lasted() -> None:
    """The middle sample of either is of one step; the candidate that holds the higher one for longer is the faster."""
    shapes = field(4)
    viewer = Stepping(lambda *_: 0.8, high={shapes[1]: 5, shapes[2]: 7})
    assert [each.shape for each in hunted(viewer, shapes).ranking[:2]] == [shapes[2], shapes[1]]


def test_standings_of_an_earlier_schedule_are_read() -> None:
    """A round fewer, and a third that went on: what was over stays so, and what was not goes on."""
    shapes, rates = landscape(5)
    kept = {
        "done": ["ready", "0", "1"],
        "spent_s": 0.5,
        "contenders": [
            {"shape": list(shape), "standings": {"0": [0.0005, math.log(rates[shape])]}, "fallen": ""} for shape in shapes
        ],
    }
    for contender in kept["contenders"][:22]:  # type: ignore[index]
        contender["standings"]["1"] = [0.01, contender["standings"]["0"][1]]  # type: ignore[index]
    whole = Standings.from_json({**kept, "done": ["ready", "0", "1", "2", "3", "burst"]})
    assert whole.are_final(burst=True)
    viewer = Scripted(lambda shape, *_: rates[shape])
    half = Standings.from_json(json.loads(json.dumps(kept)))
    assert Hunt(shapes, viewer, Allowance(BUDGET_S), clock=viewer.clock, standings=half).run().are_final(burst=False)
    assert half.ranking[0].shape == max(shapes[:22], key=lambda shape: rates[shape])


def test_a_drift_falls_on_all_alike() -> None:
    """A device that slows down by a tenth in the course of a round favours nobody."""
    shapes = field(30)
    viewer = Scripted(lambda *_: 0.9)
    viewer._rate = lambda shape, *_: (0.9 if shape == shapes[20] else 0.89) / (1 + 0.3 * viewer.clock())
    assert hunted(viewer, shapes).ranking[0].shape == shapes[20]


def test_what_a_device_holds_for_a_moment_only_does_not_win() -> None:
    """Under a power limit the fastest of brief looks is not the fastest of long ones."""
    shapes = field(12)
    brief, lasting = shapes[3], shapes[8]

    def rate(shape: Shape, seconds: float, idle_s: float) -> float:
        long = seconds > 0.02
        return {brief: 0.7 if long else 0.9, lasting: 0.85}.get(shape, 0.8)

    viewer = Scripted(rate)
    assert hunted(viewer, shapes).ranking[0].shape == lasting


def test_from_idle_another_may_be_the_best() -> None:
    shapes = field(12)
    viewer = Scripted(lambda shape, seconds, idle_s: {shapes[2]: 0.9, shapes[5]: 0.95 if idle_s else 0.88}.get(shape, 0.8))
    standings = hunted(viewer, shapes, window_s=0.005)
    assert (standings.ranking[0].shape, standings.burst_ranking[0].shape) == (shapes[2], shapes[5])
    assert any(idle_s > 0 for _, _, idle_s in viewer.looks)


def test_without_a_burst_no_look_waits() -> None:
    viewer = Scripted(lambda *_: 0.8)
    standings = hunted(viewer, field(12))
    assert BURST not in standings.done
    assert {idle_s for _, _, idle_s in viewer.looks} == {0.0}
    assert standings.burst_ranking == standings.ranking


def test_a_candidate_that_cannot_be_looked_at_comes_last_and_keeps_its_reason() -> None:
    shapes = field(12)
    viewer = Scripted(lambda *_: 0.8, fails={shapes[0]: "crashed: it is gone"})
    ranking = hunted(viewer, shapes).ranking
    assert (ranking[-1].shape, ranking[-1].fallen) == (shapes[0], "crashed: it is gone")
    assert len(ranking) == len(shapes)


def test_what_is_faster_than_the_device_can_be_falls_out() -> None:
    shapes = field(12)
    viewer = Scripted(lambda shape, *_: 5.0 if shape == shapes[4] else 0.8)
    ranking = hunted(viewer, shapes, most_flop_s=FLOP_S).ranking
    assert ranking[-1].shape == shapes[4]
    assert ranking[-1].fallen == "faster than the device can be, which is 1e+12 operations/s by its sheet"


def test_slow_candidates_are_fewer() -> None:
    """What takes long to make ready, or to launch, leaves time for fewer."""
    shapes = field()
    slow_to_ready = hunted(Scripted(lambda *_: 0.8, ready_s=0.05), shapes)
    slow_to_launch = hunted(Scripted(lambda *_: 0.01), shapes)
    for standings in (slow_to_ready, slow_to_launch):
        assert 2 <= len(standings.contenders) < len(shapes) / 2
        assert standings.ranking[0].rounds


def test_only_those_that_go_on_are_held() -> None:
    shapes, rates = landscape(4)
    viewer = Scripted(lambda shape, *_: rates[shape])
    held: list[int] = []

    def tell(stage: Stage, standings: Standings) -> None:
        held.append(len(viewer.held))

    Hunt(shapes, viewer, Allowance(BUDGET_S), tell, clock=viewer.clock).run()
    assert held[1] == 64
    assert held[1:] == sorted(held[1:], reverse=True)
    assert held[-1] <= LAST_ROUND + BURST_FIELD
    assert not viewer.held


@pytest.mark.parametrize("ends_after", [1, 70, 150, 230, 250])
def test_an_interrupted_hunt_goes_on_and_comes_to_its_end_in_its_time(ends_after: int) -> None:
    shapes, rates = landscape(5)
    calls = count()
    first = Scripted(lambda shape, *_: rates[shape])
    over = [False]

    def rate(shape: Shape, *_: float) -> float:
        over[0] = next(calls) >= ends_after
        return rates[shape]

    first._rate = rate
    half = Hunt(shapes, first, Allowance(BUDGET_S), over=lambda: over[0], clock=first.clock).run()
    kept = json.loads(json.dumps(half.to_json()))
    again = Scripted(lambda shape, *_: rates[shape])
    whole = Hunt(shapes, again, Allowance(BUDGET_S), clock=again.clock, standings=Standings.from_json(kept)).run()
    assert whole.ranking[0].shape == best_of(rates)
    assert len(whole.contenders) == len({each.shape for each in whole.contenders}) == 64
    assert whole.spent_s == pytest.approx(BUDGET_S, rel=0.15)
    assert whole.are_final(burst=False)
    assert not half.are_final(burst=False) or again.looks == []
    if kept["done"]:
        assert again.clock() < BUDGET_S


def test_a_hunt_that_ended_before_its_looks_from_idle_is_final_only_without_them() -> None:
    viewer = Scripted(lambda *_: 0.8)
    half = hunted(viewer, field(8))
    assert half.are_final(burst=False)
    assert not half.are_final(burst=True)
    allowed = Allowance(2 * BUDGET_S, window_s=0.005)
    assert Hunt(field(8), viewer, allowed, clock=viewer.clock, standings=half).run().are_final(burst=True)


def test_rounds_are_told_with_who_is_ahead() -> None:
    shapes, rates = landscape(6)
    viewer = Scripted(lambda shape, *_: rates[shape])
    told: list[tuple[Stage, bool]] = []
    Hunt(
        shapes,
        viewer,
        Allowance(BUDGET_S, window_s=0.005),
        lambda stage, standings: told.append((stage, bool(standings.contenders))),
        clock=viewer.clock,
    ).run()
    assert [stage.number for stage, _ in told] == [0, 1, 2, 3, 4, 5, 6]
    assert {stage.of for stage, _ in told} == {6}
    assert [stage.contenders for stage, _ in told] == [0, 64, 32, 16, 8, 4, 8]
    assert [known for _, known in told] == [False, *[True] * 6]


@pytest.mark.parametrize("candidates", [0, 1, 2, 6, 7, 64])
def test_any_number_of_candidates_comes_to_an_end(candidates: int) -> None:
    standings = hunted(Scripted(lambda *_: 0.8), field(candidates), window_s=0.001)
    assert len(standings.ranking) == candidates
    assert round_sizes(candidates)[-1] <= LAST_ROUND


def test_standings_hold_no_rate() -> None:
    """What was looked at is a candidate: nobody can take the state of a search for a measurement."""
    shapes, rates = landscape(7)
    kept = hunted(Scripted(lambda shape, *_: rates[shape]), shapes, window_s=0.005).to_json()
    numbers = [each for contender in kept["contenders"] for _, each in contender["standings"].values()]
    assert all(abs(each) < math.log(2) for each in numbers)
    assert set(kept["contenders"][0]) == {"shape", "standings", "fallen"}
