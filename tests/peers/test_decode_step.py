"""The comparison of decode steps, as far as it goes without a device: groups, limits, rows, and the whole chain on a CPU."""

from pathlib import Path

import pytest

from tests.peers import decode_step
from tests.peers.bench import Bench
from tests.peers.child import Deadline
from tests.peers.decode_step import ALONE, EAGER, LIBRARY, OWN, PART, Group, groups, judged, largest_sets, planned, read_of
from tests.peers.part import Session
from tests.peers.record import Record, Verdict

H200_BYTES = 141e9


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Bench("cpu", tiny=True), Record(PART.name, tmp_path / "decode_step.json"), Deadline(100.0), "cpu", "ncu")


def test_the_case_with_a_limit_comes_first_and_no_group_repeats() -> None:
    found = list(groups())
    assert found[0] == Group(1, (EAGER, LIBRARY, OWN))
    assert found[1].batch == 8
    assert len(set(found)) == len(found)
    assert {group.batch for group in found} == {1, 2, 4, 8, 16, 32, 64}


def test_every_group_has_room_on_an_h200() -> None:
    assert max(largest_sets()) + (4 << 30) < 0.92 * H200_BYTES


@pytest.mark.parametrize(("of_read", "verdict"), [(0.80, Verdict.PASS), (0.799, Verdict.FAIL), (None, Verdict.FAIL)])
def test_roofbenchs_own_step_of_one_sequence_has_a_limit_and_no_other(of_read: float | None, verdict: Verdict) -> None:
    assert judged(1, OWN, of_read)[0] is verdict
    assert {judged(batch, way, of_read)[0] for batch, way in ((1, LIBRARY), (8, OWN), (1, ALONE[1]))} == {Verdict.INFO}


def test_cases_are_those_of_a_run(session: Session) -> None:
    found = planned(session.bench, 8, OWN)
    assert found.case.regime.label == "warm/sustained/device"
    assert (found.sets, found.case.implementation) == (1, "triton_tuned")
    assert found.case.workload.param("batch") == 8
    assert read_of(session.bench).case.workload.param("op") == "read"


def test_a_cpu_measures_torchs_step_and_says_what_it_has_not(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_step, "groups", lambda: iter([Group(2, (EAGER, OWN))]))
    monkeypatch.setattr(decode_step, "ROUNDS", 1)
    monkeypatch.setattr(decode_step, "read_of", _a_small_read)
    PART.run(session)
    read, eager, own = session.record.rows
    assert [row.verdict for row in (read, eager, own)] == [Verdict.INFO, Verdict.INFO, Verdict.ABSENT]
    assert own.note == "unsupported: implementation triton_tuned runs on GPUs; the device here is a CPU"
    figures = eager.figures
    assert figures["tokens_s"] == 2 / figures["time_s"]
    assert figures["of_read"] == pytest.approx(figures["least_s"] / figures["time_s"])
    assert PART.table(session.record).count("batch 2") >= 3


def _a_small_read(bench: Bench) -> object:
    """The whole one is eight times a cache: seconds on a CPU."""
    from dataclasses import replace

    from suite.case import items
    from suite.jobs.calibration import CalibrationJob

    found = read_of(bench)
    workload = replace(found.case.workload, params=items({"op": "read", "bytes": 1 << 20}))
    return found._replace(case=replace(found.case, workload=workload), work=CalibrationJob().work(workload))


def test_without_time_the_rest_is_absent(session: Session) -> None:
    late = session._replace(deadline=Deadline(0.0))
    PART.run(late)
    assert {row.verdict for row in late.record.rows} == {Verdict.ABSENT}
    assert len(late.record.rows) == len(list(groups()))
