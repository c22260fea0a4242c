"""What searches have yet to do: their cases by stand-ins, and the time of looking."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from suite.backend import DeviceInfo
from suite.commands.plan import SKIPPED, Planned, _json_lines, _text_lines
from suite.errors import UsageError
from suite.jobs.gemm import GemmSettings
from suite.jobs.shapes import Shape
from suite.planned import DeviceSlot, PlannedCase
from suite.search.expected import hunting_s, left_out, searches, sought, still_hunting_s, still_sought, too_short, waiting
from suite.search.subject import Subject, shape_of
from suite.settings import MeasureSettings, RunConfig, SearchSettings

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


H200 = DeviceInfo(
    "cuda", 0, "NVIDIA H200", "f" * 16, 150_754_820_096, architecture="sm_90", visible_units=132, max_clock_hz=1980e6,
    llc_bytes=60 * 2**20, power_limit_w=700.0,
)  # fmt: skip


def named(
    shapes: list[str], formats: Sequence[str] = ("bf16",), scaling: list[str] | None = None, **given: object
) -> RunConfig:
    job = GemmSettings(formats=list(formats), shapes=shapes, scaling=scaling)
    return RunConfig(jobs={"gemm": job}, search=SearchSettings(), **given)  # type: ignore[arg-type]


def on_h200(config: RunConfig) -> tuple[Subject, ...]:
    return searches(config, [DeviceSlot(0, "cuda", "a:B", H200)])


def test_a_named_shape_that_is_not_looked_at_is_told_once_with_its_formats_and_the_limit() -> None:
    told = left_out(on_h200(named(["100000", "8192"], ["bf16", "fp16"])))
    assert told == (
        "gemm 100000x100000x100000 bf16, fp16: about 2.02 s or more a launch on cuda, above 0.02 s, which is 0.002 of "
        "search.budget_s=10",
    )
    (line,) = left_out(on_h200(named(["8192"], max_kernel_s=1e-4)))
    assert line.endswith("on cuda, above max_kernel_s=0.0001")


def test_more_named_shapes_than_a_search_looks_at_are_told() -> None:
    told = left_out(on_h200(named([f"{64 * number}x1024x1024" for number in range(1, 67)])))
    assert told == tuple(
        f"gemm {64 * number}x1024x1024 bf16: a search looks at 64 shapes at most, those named first in their order"
        for number in (65, 66)
    )


@pytest.mark.parametrize("oversize", ["refuse", "record"])
def test_a_named_shape_that_does_not_fit_ends_the_run_or_is_told(oversize: str) -> None:
    """Short, for K is 64: most of it is the output, and there is no room for that."""
    config = named(["300000x300000x64", "8192"], oversize=oversize)
    if oversize == "refuse":
        with pytest.raises(
            UsageError, match=r"at 300000x300000x64 on cuda needs \S+ GB, predicted; .* oversize=record to search"
        ):
            on_h200(config)
    else:
        (line,) = left_out(on_h200(config))
        assert line.startswith("gemm 300000x300000x64 bf16: needs ")


def test_a_search_of_which_no_shape_is_short_enough_is_refused_as_any_run_is() -> None:
    with pytest.raises(UsageError) as refused:
        on_h200(named(["8192"], max_kernel_s=1e-12))
    assert str(refused.value) == (
        "no shape of the search is short enough: gemm bf16 64x64x64 takes about 5.3e-10 s a launch on cuda at its peak, above "
        "max_kernel_s=1e-12; drop the format, or write max_kernel_s=null for no limit"
    )
    assert on_h200(named(["8192"], max_kernel_s=1e-9))


def test_scalings_of_one_format_each_have_the_shapes_that_suit_them() -> None:
    """On a slow device the grid becomes finer than the blocks of one of them."""
    config = named(["8192"], ["fp8_e4m3"], ["row", "block"], max_kernel_s=1e-8)
    steps = {subject.example.case.workload.format_label: subject.space().shapes[:, 2].min() for subject in on_h200(config)}
    assert steps == {"fp8_e4m3 row": 64, "fp8_e4m3 block": 128}


def test_what_waits_is_what_is_left_and_nothing_of_a_search_that_is_over() -> None:
    subjects = searched(devices=1)
    first, second = waiting(subjects, (), measured(0, 1))
    assert (len(first.stand_ins), first.hunting_s) == (EACH - 1, 0.0)
    assert (len(second.stand_ins), second.hunting_s) == (EACH, LOOKING_S)
    assert [each.subject for each in waiting(subjects, (), measured(0, EACH))] == [subjects[1]]


def test_time_in_which_no_search_comes_any_further_is_too_short_while_there_is_one_to_look() -> None:
    config = RunConfig(
        jobs={"gemm": GemmSettings(formats=["bf16"])}, search=SearchSettings(), measure=MeasureSettings(), max_time_s=4.0
    )
    (subject,) = searches(config, [DeviceSlot(0, "cuda", "a:B", H200)])
    why = too_short(config, waiting([subject], (), ()))
    assert why.startswith("max_time_s=4 is too short for a search to come any further: to warm up (search.warm_up_s=5)")
    enough = float(why.split("write max_time_s=")[1].split(" ")[0])
    assert 5 < enough < 10
    for limit_s in (None, enough):
        assert too_short(replace(config, max_time_s=limit_s), waiting([subject], (), ())) == ""
    assert too_short(config, waiting([subject], (), measured(0, 1))) == "", "it has looked, and a case takes the time it needs"


def test_a_plan_of_what_is_left_lists_no_search_that_is_over_and_of_one_that_looked_only_its_cases() -> None:
    subjects = searched(devices=1)
    slots = [subjects[0].slot]

    def plan_of(count: int) -> Planned:
        left = waiting(subjects, (), measured(0, count))
        return Planned(subjects[0].config, tuple(slots), (), searches=subjects, waiting=left)

    def listed(planned: Planned) -> list[str]:
        return [line for line in _text_lines(planned) if line.startswith("search ")]

    assert [" bf16 " in line for line in listed(plan_of(0))] == [True, False]
    (line,) = listed(plan_of(EACH))
    assert " int8 " in line
    first, second = listed(plan_of(1))
    assert f"looked at what there is; {EACH - 1} of {EACH} cases left to measure" in first
    assert "10 s for the best of " in second
    rows = json.loads("".join(_json_lines(plan_of(EACH + 1))))
    assert [row["format"] for row in rows] == ["int8"]
    assert rows[0]["predicted_s"] == pytest.approx(sum(each.predicted_s for each in subjects[1].outline.stand_ins[1:]))
    assert SKIPPED in list(_text_lines(plan_of(0)))
