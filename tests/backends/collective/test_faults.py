"""A rank that is killed, hangs, raises or computes wrong ends its own case, within the limit, and no other of the sweep."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from backends.cpu import CpuBackend
from suite.jobs.collective import CollectiveSettings
from suite.launcher.happenings import CaseEnded
from suite.launcher.launch import Launcher
from suite.measurement import Measurement
from suite.outcome import Outcome
from suite.plan import plan
from suite.planned import DeviceSlot
from suite.settings import BackendSettings, RunConfig
from tests.patience import PATIENCE_S
from tests.processes.bench import quick

TARGET = "tests.backends.collective.planted:PlantedRanks"
LIMIT_S = 20.0  # in which the other messages are measured, and a rank that hangs is named after three looks of a second
STEP = 8000
Fault = tuple[str, str]  # what, and at which order
FAULTS: tuple[Fault, ...] = (("kill", "Sample"), ("leave", "Sample"), ("hang", "Sample"), ("raise", "Launch"), ("wrong", ""))
ELSEWHERE: tuple[Fault, ...] = (("kill", "Launch"), ("hang", "Observe"))  # the same of another order


class Ended(NamedTuple):
    measurement: Measurement
    elapsed_s: float


@pytest.fixture(scope="module")
def ended() -> dict[int, Ended]:
    return sweep(FAULTS)


@pytest.fixture(scope="module")
def ended_elsewhere() -> dict[int, Ended]:
    return sweep(ELSEWHERE)


def sweep(faults: Sequence[Fault]) -> dict[int, Ended]:
    """A sweep over two ranks in which every other message has a fault, by message bytes."""
    sizes = [str(size) for number in range(1, len(faults) + 1) for size in (number * STEP, number * STEP + STEP // 2)]
    plant = [
        {"fault": fault, "rank": 1, "bytes": number * STEP, "at": at} for number, (fault, at) in enumerate(faults, start=1)
    ]
    job = CollectiveSettings(ops=["all_reduce"], sizes=sizes, world_sizes=[2], algos=["ring"], implementations=["own"])
    measure = quick(1, start_s=PATIENCE_S, compile_s=PATIENCE_S, verify_s=LIMIT_S, measure_s=LIMIT_S)
    slot = DeviceSlot(0, "cpu", TARGET, CpuBackend().devices()[0])
    backends = {"cpu": BackendSettings("cpu", TARGET, {"plant": plant})}
    cases = plan(RunConfig(jobs={"collective": job}, measure=measure), [slot], {0})
    with Launcher([slot], backends, measure, {}) as launcher:
        launcher.start()
        happenings = list(launcher.run(cases, lambda _: 1, None))
    return {
        each.planned.case.workload.param("message_bytes"): Ended(each.measurement, each.elapsed_s)
        for each in happenings
        if isinstance(each, CaseEnded)
    }


def of(ended: dict[int, Ended], fault: str, at: str) -> Ended:
    return ended[(FAULTS.index((fault, at)) + 1) * STEP]


def sound(ended: dict[int, Ended]) -> list[Outcome]:
    return [each.measurement.outcome for size, each in ended.items() if size % STEP]


def test_every_other_message_of_the_sweep_is_measured(ended: dict[int, Ended]) -> None:
    assert sound(ended) == [Outcome.OK] * len(FAULTS)


def test_a_rank_that_is_killed_is_a_crash_that_says_which(ended: dict[int, Ended]) -> None:
    is_killed(of(ended, "kill", "Sample"))


def is_killed(ended: Ended, order: str = "Sample") -> None:
    is_crash(ended, f"died with SIGKILL before it answered {order} of all_reduce 8000 B fp32 (own ring/library)")


def is_crash(ended: Ended, said: str) -> None:
    found = ended.measurement
    assert found.outcome is Outcome.CRASHED
    assert re.fullmatch(rf"rank 1 of 2 \(host 1 of 1, pid \d+\) {re.escape(said)}", found.reason)


def test_a_rank_that_leaves_is_a_crash_with_its_status(ended: dict[int, Ended]) -> None:
    said = "left with status 3 before it answered Sample of all_reduce 16000 B fp32 (own ring/library)"
    is_crash(of(ended, "leave", "Sample"), said)


def test_a_rank_that_hangs_is_a_timeout_of_the_phase_at_its_limit_that_says_which(ended: dict[int, Ended]) -> None:
    found = of(ended, "hang", "Sample")
    is_a_timeout(found, "measure")
    said = "did not come to Sample of all_reduce 24000 B fp32 (own ring/library), others wait there"
    line = rf"; last log line: rank 1 of 2 \(host 1 of 1, pid \d+\) {re.escape(said)}$"
    assert re.search(line, found.measurement.reason)


def is_a_timeout(ended: Ended, phase: str) -> None:
    found, taken_s = ended
    assert found.outcome is Outcome.TIMEOUT
    assert f"measure.deadlines.{phase}_s={LIMIT_S:g}" in found.reason
    assert f"killed in phase {phase}" in found.reason
    assert LIMIT_S < taken_s < LIMIT_S + PATIENCE_S


@pytest.mark.thorough
def test_a_rank_that_is_killed_or_hangs_at_another_order_ends_its_case_alike(ended_elsewhere: dict[int, Ended]) -> None:
    is_killed(ended_elsewhere[STEP], "Launch")
    is_a_timeout(ended_elsewhere[2 * STEP], "verify")
    assert re.search(
        r"last log line: rank 1 of 2 \(host 1 of 1, pid \d+\) did not answer Observe of all_reduce 16000 B fp32 "
        r"\(own ring/library\) within 3 s, others did$",
        ended_elsewhere[2 * STEP].measurement.reason,
    )
    assert sound(ended_elsewhere) == [Outcome.OK] * len(ELSEWHERE)


def test_what_a_rank_raises_keeps_its_meaning(ended: dict[int, Ended]) -> None:
    found = of(ended, "raise", "Launch").measurement
    assert found.outcome is Outcome.UNSUPPORTED
    assert found.reason.startswith("rank 1 of 2: NotImplementedError: planted")


def test_a_rank_that_computes_wrong_is_incorrect_before_anything_is_timed(ended: dict[int, Ended]) -> None:
    found = of(ended, "wrong", "").measurement
    assert found.outcome is Outcome.INCORRECT
    elements = len(FAULTS) * STEP // 4
    assert found.reason == f"exact integers came out wrong: 1 of {elements} elements at worst, on ranks 1 of 2"
    assert found.samples is None
