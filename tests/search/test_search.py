"""A search at its desk: what it tells when it goes on, and that a sweep's time left counts looking once."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.estimate import Estimate
from suite.events import CaseFinished, Event, SearchRound
from suite.jobs.gemm import GemmSettings
from suite.launcher.happenings import CaseEnded, Happening, SearchEnded, SearchTold
from suite.launcher.quest import Desk
from suite.measurement import Measurement
from suite.outcome import Outcome
from suite.plan import plan
from suite.planned import PlannedCase
from suite.protocol import Glance
from suite.search.expected import searches
from suite.search.search import Search
from suite.settings import BackendSettings, RunConfig, SearchSettings
from suite.store.writer import Store
from suite.sweep import Sweep, sweep
from tests.processes.bench import TARGET, quick, slots
from tests.search.test_looker import ScriptedSeat

SETTINGS = SearchSettings(budget_s=0.3, warm_up_s=0.05, finalists=2)
LOOKING_S = 0.35


def configured(*formats: str, search: SearchSettings = SETTINGS) -> Sweep:
    backends = {"fake": BackendSettings("fake", TARGET, {})}
    config = RunConfig(jobs={"gemm": GemmSettings(formats=list(formats))}, backends=backends, measure=quick(), search=search)
    places = tuple(slots({}))
    return Sweep(config, places, plan(config, places), searches(config, places))


def told(search: Search, until: Callable[[Happening], bool] = lambda happening: False) -> list[Happening]:
    """What a search tells at a desk where every look is as fast; its run is over once ``until`` has seen its happening."""
    happenings: list[Happening] = []

    def over() -> bool:
        return any(map(until, happenings))

    def measure(planned: PlannedCase) -> CaseEnded:
        return CaseEnded(planned, Measurement(Outcome.UNSUPPORTED), None, 0.0)

    search.run(Desk(ScriptedSeat(), happenings.append, measure, over))  # type: ignore[arg-type]
    return happenings


def last_state(happenings: list[Happening]) -> dict[str, Any]:
    state = [each.state for each in happenings if isinstance(each, SearchTold)][-1]
    return dict(json.loads(json.dumps(state)))


def in_round(number: int) -> Callable[[Happening], bool]:
    return lambda happening: (
        isinstance(happening, SearchTold) and happening.round is not None and happening.round.number == number
    )


def no_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.search.space.space", lambda *_: pytest.fail("a grid was made"))


def test_a_search_that_looks_to_its_end_passes_what_that_was_predicted_to_take() -> None:
    (subject,) = configured("int8").searches
    search = Search(subject)
    assert search.hunting_s == pytest.approx(LOOKING_S)
    passed = [each.passed_s for each in told(search) if isinstance(each, SearchTold)]
    assert passed == [*[0.0] * (len(passed) - 1), search.hunting_s]


def test_a_search_whose_looking_is_over_makes_no_grid_and_passes_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    (subject,) = configured("int8").searches
    state = last_state(told(Search(subject)))
    no_grid(monkeypatch)
    again = Search(subject, state)
    assert again.hunting_s == 0.0
    assert [type(each) for each in told(again)] == [SearchEnded]


def test_a_search_that_goes_on_between_rounds_makes_no_grid_and_tells_who_is_ahead_without_a_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (subject,) = configured("int8").searches
    half = told(Search(subject), in_round(2))
    first = [each.round for each in half if isinstance(each, SearchTold) and each.round is not None][-1]
    no_grid(monkeypatch)
    again = Search(subject, last_state(half))
    assert again.hunting_s == pytest.approx(LOOKING_S)
    rounds = [each.round for each in told(again) if isinstance(each, SearchTold) and each.round is not None]
    assert (first.number, rounds[0].number) == (2, 2)
    assert (first.format, rounds[0].ahead) == ("int8", first.ahead)
    assert first.about_flop_s is not None
    assert rounds[0].about_flop_s is None
    assert rounds[1].about_flop_s is not None


def test_when_a_resumed_sweep_ends_no_looking_is_left_and_none_was_passed_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of two searches was over when the run was ended; its time must not be taken from that of the second."""
    looking: list[tuple[float, float]] = []

    class Watched(Estimate):
        def __init__(self, *given: Any) -> None:
            self.besides_s: Mapping[int, float] = given[3]
            self.passed_s = 0.0
            super().__init__(*given)

        def passed(self, slot: int, predicted_s: float) -> None:
            self.passed_s += predicted_s
            looking.append((sum(self.besides_s.values()), self.passed_s))
            super().passed(slot, predicted_s)

    monkeypatch.setattr("suite.sweep.Estimate", Watched)
    whole = configured("bf16", "int8")

    def leave(event: Event) -> None:
        if isinstance(event, CaseFinished) and event.row.job == "gemm":
            raise KeyboardInterrupt

    events: list[Event] = []
    with Store.open(str(tmp_path / "store.db")) as store:
        with pytest.raises(KeyboardInterrupt):
            sweep(whole, store, leave)
        assert looking[-1] == pytest.approx((2 * LOOKING_S, LOOKING_S))
        end = sweep(Sweep(whole.config, whole.slots, whole.cases, whole.searches, resume="latest"), store, events.append)
    assert end.status == "complete"
    assert looking[-1] == pytest.approx((LOOKING_S, LOOKING_S))
    assert {event.format for event in events if isinstance(event, SearchRound)} == {"int8"}


def test_a_search_that_is_ended_within_a_round_keeps_its_looks_and_goes_on_with_the_others() -> None:
    (subject,) = configured("int8").searches
    (patient,) = configured("int8", search=replace(SETTINGS, budget_s=60.0)).searches  # ended by looks, however slow the host
    seat, told_first = ScriptedSeat(), list[Happening]()
    looks = lambda: sum(isinstance(request, Glance) for request in seat.log)  # noqa: E731

    def in_first_round() -> bool:
        begun = any(isinstance(each, SearchTold) and each.round and each.round.number == 1 for each in told_first)
        until.extend([looks() + 20] if begun and not until else [])
        return bool(until) and looks() >= until[0]

    until: list[int] = []
    Search(patient).run(Desk(seat, told_first.append, lambda planned: None, in_first_round))  # type: ignore[arg-type]
    state = last_state(told_first)
    assert state["done"] == ["ready"]
    assert len(state["under_way"]["turns"][0]) > 10
    kept = [each for each in told_first if isinstance(each, SearchTold)][-1]
    assert (kept.round, kept.passed_s) == (None, 0.0)
    rounds = [each.round.number for each in told(Search(subject, state)) if isinstance(each, SearchTold) and each.round]
    assert rounds[0] == 1
