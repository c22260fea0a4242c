"""Alternating rounds: who is measured with whom, and what becomes of the others when one brings the worker down."""

from pathlib import Path

from suite.events import PhaseStarted, WorkerRestarted
from suite.launcher.happenings import CaseEnded, Happening
from suite.launcher.lane import companies
from suite.outcome import Outcome
from suite.planned import PlannedCase
from tests.processes.bench import COLD, ends, planned, quick, run

ROUNDS = 3


def cohort(*implementations: str, shape: str = "8x8x8", number: int = 0) -> list[PlannedCase]:
    return [planned(shape, implementation=each, cohort=number) for each in implementations]


def measured_order(happenings: list[Happening]) -> str:
    """The implementations in the order in which they were measured."""
    return "".join(h.case.implementation for h in happenings if isinstance(h, PhaseStarted) and h.phase == "measure")


def test_one_workload_is_measured_in_alternating_rounds_each_a_batch() -> None:
    happenings = run(cohort("a", "b") + cohort("c", shape="9x8x8", number=1), quick(interleave=ROUNDS))
    assert measured_order(happenings) == "abbaabc"
    measured = ends(happenings)
    batches = {name: len(m.samples.boundaries) for name, m in measured.items() if m.samples}
    assert batches == {"8 a": ROUNDS, "8 b": ROUNDS, "9 c": 1}
    assert {m.outcome for m in measured.values()} == {Outcome.OK}


def test_without_interleaving_each_case_is_alone() -> None:
    assert measured_order(run(cohort("a", "b"))) == "ab"


def test_cases_of_other_workloads_or_regimes_never_share_a_company() -> None:
    cases = [
        planned("8x8x8", implementation="a"),
        planned("9x8x8", implementation="a"),
        planned("8x8x8", implementation="b"),
        planned("8x8x8", implementation="b", regime=COLD._replace(cache="warm")),
    ]
    together = [[(c.case.workload.param("m"), c.case.regime.cache) for c in company.members] for company in companies(cases, 2)]
    assert together == [[(8, "cold"), (8, "cold")], [(9, "cold")], [(8, "warm")]]


def test_a_case_that_kills_the_worker_is_tried_alone_and_the_others_again_together() -> None:
    happenings = run(cohort("a", "b", "c"), quick(interleave=2), faults={"8x8x8": "abort@measure"}, struck="b")
    measured = ends(happenings)
    assert {name: m.outcome for name, m in measured.items()} == {
        "8 a": Outcome.OK,
        "8 b": Outcome.CRASHED,
        "8 c": Outcome.OK,
    }
    # a and b begin; without b, a and c alternate; b is tried alone, kills the worker again, and is not tried a third time.
    assert measured_order(happenings) == "ab" + "acca" + "b"
    assert sum(isinstance(h, WorkerRestarted) for h in happenings) == 2
    assert "apart" in measured["8 b"].description
    assert "apart" not in measured["8 a"].description


def test_a_case_that_fails_only_once_has_a_result_of_its_own(tmp_path: Path) -> None:
    faults = {"8x8x8": f"die_once:{tmp_path / 'died'}@measure"}
    measured = ends(run(cohort("a", "b"), quick(interleave=2), faults=faults))
    assert {m.outcome for m in measured.values()} == {Outcome.OK}
    (apart,) = [m for m in measured.values() if "apart" in m.description]
    assert "SIGABRT" in apart.description["apart"]


def test_memory_that_does_not_suffice_for_all_is_tried_alone() -> None:
    measured = ends(run(cohort("a", "b", "c"), quick(interleave=2), faults={"8x8x8": "oom_in_company"}))
    assert {m.outcome for m in measured.values()} == {Outcome.OK}


LIMIT_S = 5.0  # the other is measured within it


def test_a_hang_is_not_waited_for_twice() -> None:
    happenings = run(cohort("a", "b"), quick(interleave=2, measure_s=LIMIT_S), faults={"8x8x8": "hang@measure"}, struck="b")
    assert {name: m.outcome for name, m in ends(happenings).items()} == {"8 a": Outcome.OK, "8 b": Outcome.TIMEOUT}
    assert measured_order(happenings).count("b") == 1


def test_a_case_that_ends_early_leaves_the_others_alternating() -> None:
    faults = {"8x8x8": "wrong"}
    happenings = run(cohort("a", "b", "c"), quick(interleave=2), faults=faults, struck="b")
    assert {name: m.outcome for name, m in ends(happenings).items()} == {
        "8 a": Outcome.OK,
        "8 b": Outcome.INCORRECT,
        "8 c": Outcome.OK,
    }
    assert measured_order(happenings) == "acca"


def test_every_member_that_dies_is_recorded_once() -> None:
    happenings = run(cohort("a", "b", "c"), quick(interleave=2), faults={"8x8x8": "segfault"})
    assert {m.outcome for m in ends(happenings).values()} == {Outcome.CRASHED}
    assert sum(isinstance(h, CaseEnded) for h in happenings) == 3


def test_two_backends_on_one_device_alternate_under_one_lane() -> None:
    cases = [
        planned("8x8x8", slot=0, implementation="a", backend="fake"),
        planned("8x8x8", slot=1, implementation="b", backend="fake"),
    ]
    happenings = run(cases, quick(interleave=ROUNDS), devices=2, device={"pci_bus_id": "0000:01:00.0"})
    assert measured_order(happenings) == "abbaab"
    pids = {h.planned.slot: h.measurement.description["pid"] for h in happenings if isinstance(h, CaseEnded)}
    assert pids[0] != pids[1]
    assert {m.outcome for m in ends(happenings).values()} == {Outcome.OK}


def test_a_death_in_one_backend_costs_nothing_in_the_other() -> None:
    cases = [planned("8x8x8", slot=slot, implementation=each) for slot, each in enumerate("ab")]
    happenings = run(
        cases,
        quick(interleave=2),
        devices=2,
        device={"pci_bus_id": "0000:01:00.0"},
        faults={"8x8x8": "abort@measure"},
        struck="b",
    )
    assert {name: m.outcome for name, m in ends(happenings).items()} == {"8 a": Outcome.OK, "8 b": Outcome.CRASHED}
    assert {h.slot for h in happenings if isinstance(h, WorkerRestarted)} == {1}
