"""What searches have yet to do: their cases by stand-ins, and the time of looking."""

from collections.abc import Sequence

import pytest

from suite.backend import DeviceInfo
from suite.jobs.gemm import GemmSettings
from suite.jobs.shapes import Shape
from suite.planned import DeviceSlot, PlannedCase
from suite.search.expected import hunting_s, searches, sought, still_hunting_s, still_sought
from suite.search.subject import Subject, shape_of
from suite.settings import RunConfig, SearchSettings

FINALISTS, LOADS = 3, 2
EACH = FINALISTS * LOADS
LOOKING_S = 10.0 + 5.0


def searched(formats: Sequence[str] = ("bf16", "int8"), devices: int = 2) -> tuple[Subject, ...]:
    infos = [
        DeviceInfo("fake", index, "Simulated Accelerator", f"s{index}", 2**36, visible_units=100) for index in range(devices)
    ]
    config = RunConfig(jobs={"gemm": GemmSettings(formats=list(formats))}, search=SearchSettings())
    return searches(config, [DeviceSlot(info.index, "fake", "a:B", info) for info in infos])


def measured(slot: int, count: int) -> set[tuple[int, str]]:
    return {(slot, f"found {number}") for number in range(count)}


def by_slot(cases: Sequence[PlannedCase]) -> list[int]:
    return [sum(each.slot == slot for each in cases) for slot in (0, 1)]


def test_there_is_a_stand_in_for_each_finalist_in_each_load_and_looking_is_none_of_its_time() -> None:
    (subject,) = searched(["bf16"], devices=1)
    stand_ins = sought([subject])
    assert [each.case.regime for each in stand_ins] == [regime for regime in subject.regimes for _ in range(FINALISTS)]
    assert [each.predicted_s for each in stand_ins] == [
        subject.planned(shape_of(each), each.case.regime).predicted_s for each in stand_ins
    ]
    assert hunting_s(subject) == LOOKING_S


def test_all_finalists_of_a_load_have_the_same_stand_in_and_it_is_planned_once() -> None:
    (subject,) = searched(["bf16"], devices=1)
    assert len({id(each) for _ in range(2) for each in sought([subject])}) == LOADS


@pytest.mark.parametrize("count", [0, 1, EACH, EACH + 1, 2 * EACH])
def test_what_one_device_has_measured_is_left_on_the_other(count: int) -> None:
    subjects = searched()
    for slot in (0, 1):
        left = by_slot(still_sought(subjects, (), measured(slot, count)))
        assert (left[slot], left[1 - slot]) == (2 * EACH - count, 2 * EACH)


def test_results_of_planned_cases_are_not_taken_for_those_of_a_search() -> None:
    subjects = searched(devices=1)
    planned = sought(subjects)[:2]
    done = {(each.slot, each.case.key) for each in planned}
    assert len(still_sought(subjects, planned, done)) == 2 * EACH
    assert len(still_sought(subjects, planned, done | measured(0, 1))) == 2 * EACH - 1


def test_more_finalists_than_were_expected_are_none_of_a_finished_search_s_own() -> None:
    assert still_sought(searched(devices=1), (), measured(0, 5 * EACH)) == []


@pytest.mark.parametrize(("count", "looking_s"), [(0, 2 * LOOKING_S), (1, LOOKING_S), (EACH, LOOKING_S), (EACH + 1, 0.0)])
def test_a_search_that_has_measured_something_has_looked(count: int, looking_s: float) -> None:
    left_s = still_hunting_s(searched(), (), measured(1, count))
    assert left_s[0] == 2 * LOOKING_S
    assert left_s.get(1, 0.0) == looking_s


def test_the_memory_of_a_search_is_of_its_largest_shapes_and_not_of_what_is_looked_at_early() -> None:
    """4096^3 in fp64 is a shape of the grid and takes 0.4 GB alone; looks hold several beside one another."""
    (subject,) = searched(["fp64"], devices=1)
    shape = Shape(4096, 4096, 4096)
    alone = max(subject.planned(shape, regime).memory_bytes for regime in subject.regimes)
    assert alone > 3 * 8 * 4096**2
    assert subject.outline.memory_bytes > alone
    assert subject.outline.memory_bytes > max(stand_in.memory_bytes for stand_in in subject.outline.stand_ins)
    info = subject.slot.info
    assert info is not None
    assert subject.outline.memory_bytes <= info.memory_bytes
