"""The flush: planted caches that a cold case was served from, and what looks like one and is not."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from suite.selftest import flush, repeat
from suite.selftest.record import Finding, Repeatability, Status
from suite.selftest.taken import Passes, Taken
from tests.selftest.material import CACHE_BYTES_S, INFO, MEMORY_BYTES_S, altered, passes, slower, with_row

IN_CACHE = "16x3840x3840"
QUIET = Repeatability(0.002, 0.002, True, 20)
COLD_OVER_WARM = CACHE_BYTES_S / MEMORY_BYTES_S - 1


def of(whole: Passes, known: Repeatability | None = QUIET) -> Finding:
    return flush.finding(whole, INFO, known)


def test_a_doubled_flush_that_changes_nothing_is_a_pass() -> None:
    finding = of(passes())
    assert finding.status is Status.OK
    assert finding.says == (
        "a doubled flush makes 10 cold cases at most 0.3 % slower than the faster of two passes, within the noise, "
        "where cold is up to 125 % slower than warm"
    )
    assert finding.figures["telling_cases"] == 2
    assert finding.figures["cold_over_warm_rel"] == pytest.approx(COLD_OVER_WARM, rel=0.01)


def test_a_flush_that_is_too_small_shows_when_it_is_doubled() -> None:
    """Planted: a third of the data stayed in the cache, in every pass but the doubled one."""
    partly = altered(passes(), lambda taken: slower(taken, 0.8), ["first", "again"], f"{IN_CACHE} bf16 cold")
    finding = of(partly)
    assert finding.status is Status.FAIL
    assert finding.says.startswith("cold is not cold: 1 of 10 cold cases came from the cache; with everything doubled ")
    assert f"{IN_CACHE} bf16 cold is up to 25 % slower (noise 1.2 %)" in finding.says
    assert finding.figures["worst_slower_rel"] == pytest.approx(0.25, abs=0.01)


def warm_as_cold(taken: Taken) -> Taken:
    return slower(taken, 1 / (1 + COLD_OVER_WARM)) if " cold" in taken.name else taken


def test_warm_that_is_called_cold_shows_although_doubling_changes_nothing() -> None:
    """Planted: the flush does nothing at all, doubled or not."""
    whole = altered(passes(), warm_as_cold, only=IN_CACHE)
    finding = of(whole)
    assert finding.status is Status.FAIL
    assert finding.says.startswith(f"cold is not cold: 2 of 10 cold cases came from the cache; {IN_CACHE} ")
    assert finding.says.endswith("cold is as fast as warm and 2.1 times as fast as memory: the flush has no effect")


def test_cold_at_the_speed_of_memory_is_believed_where_warm_is_no_faster() -> None:
    """A device whose cache is no faster than its memory: nothing tells, and nothing is claimed."""
    whole = altered(
        passes(), lambda taken: slower(taken, 1 + COLD_OVER_WARM) if " warm" in taken.name else taken, only=IN_CACHE
    )
    finding = of(whole)
    assert finding.status is Status.WARN
    assert "how cold they are is not known" in finding.says
    assert finding.figures["telling_cases"] == 0


def test_a_doubled_pass_within_the_repeatability_is_no_fault() -> None:
    drifted = altered(passes(), lambda taken: slower(taken, 1.03), ["doubled"])
    assert of(drifted, Repeatability(0.04, 0.04, True, 20)).status is Status.OK
    assert of(drifted, QUIET).status is Status.FAIL


def test_a_doubled_pass_within_the_intervals_is_no_fault() -> None:
    def wide(taken: Taken) -> Taken:
        assert taken.row.p50_s is not None
        return with_row(taken, interval_s=(taken.row.p50_s * 0.98, taken.row.p50_s * 1.02))

    drifted = altered(altered(passes(), lambda taken: slower(taken, 1.03), ["doubled"]), wide)
    assert of(drifted).status is Status.OK


def test_a_first_pass_that_was_fast_once_is_no_fault() -> None:
    """The same pass slower by as much when repeated: what changed was not the flush."""
    whole = altered(passes(), lambda taken: slower(taken, 1.05), ["doubled", "again"])
    finding = of(whole)
    assert finding.status is Status.OK
    assert "at most 5.3 % slower than the faster of two passes, and within the noise of the slower pass, where" in finding.says


def test_text_and_figures_name_one_case_and_one_comparison_the_larger() -> None:
    """On an H200 a case 0.25 % slower than one pass and 0.05 % than the other was told as 0.05 %, and another as the worst."""
    whole = altered(passes(), lambda taken: slower(taken, 1.0045), ["doubled"], f"{IN_CACHE} bf16")
    finding = of(altered(whole, lambda taken: slower(taken, 1.004), ["again"], f"{IN_CACHE} bf16"))
    assert finding.status is Status.OK
    assert "at most 0.75 % slower than the faster of two passes, within the noise" in finding.says
    assert finding.figures["worst_case"] == f"{IN_CACHE} bf16 cold"
    assert finding.figures["worst_slower_rel"] == pytest.approx(0.0075, abs=1e-4)


def test_what_is_faster_with_a_doubled_flush_is_not_called_slower() -> None:
    finding = of(altered(passes(), lambda taken: slower(taken, 0.99), ["doubled"]))
    assert finding.says.startswith("a doubled flush makes none of 10 cold cases slower, where cold is up to ")
    assert finding.figures["worst_slower_rel"] == pytest.approx(1.003 * 0.99 - 1)


def within(share: float) -> Callable[[Taken], Taken]:
    def change(taken: Taken) -> Taken:
        assert taken.row.p50_s is not None
        return with_row(taken, interval_s=(taken.row.p50_s * (1 - share), taken.row.p50_s * (1 + share)))

    return change


@pytest.mark.parametrize("share", [0.09, 0.6, 31.0])
def test_noise_is_no_pass(share: float) -> None:
    """Cases measured within 9 % each way, or not resolved, hid a doubled flush that made them 80 times as slow."""
    noisy = altered(altered(passes(), lambda taken: slower(taken, 81), ["doubled"]), within(share))
    finding = of(noisy)
    assert finding.status is Status.UNAVAILABLE
    assert finding.says == (
        "none of 10 cold cases tells anything: 10 differed by more than 10 % anyway; "
        "repeat it with a longer measure.max_time_s, or on a quieter device"
    )
    assert finding.figures["noisy_left_out"] == 10


def test_noisy_cases_are_left_out_and_the_others_tell() -> None:
    noisy = altered(passes(), lambda taken: within(0.2)(slower(taken, 80)), ["doubled"], "4096")
    finding = of(noisy)
    assert finding.status is Status.OK
    assert finding.says.startswith("a doubled flush makes 8 cold cases at most 0.3 % slower ")
    assert finding.says.endswith(" slower than warm; left out: 2 differed by more than 10 % anyway")


def test_repeated_measurements_that_differ_by_more_than_a_tenth_are_noise_too() -> None:
    assert of(passes(), Repeatability(0.002, 4.1, False, 9)).figures["noisy_left_out"] == 4


def test_cycles_that_were_counted_are_as_close_as_they_are() -> None:
    """At a power limit time moves by 6 % either way, and cycles do not: the case tells."""

    def counted(taken: Taken) -> Taken:
        cycles = (taken.row.p50_s or 0.0) * 1.5e9
        return with_row(within(0.06)(taken), p50_cycles=cycles, interval_cycles=(0.999 * cycles, 1.001 * cycles))

    assert of(altered(passes(), counted, only="2048")).figures["noisy_left_out"] == 0


def test_a_case_of_which_contention_is_not_known_is_not_quiet() -> None:
    unknown = altered(passes(), lambda taken: with_row(taken, contended=None), ["again"])
    finding = of(unknown)
    assert finding.status is Status.UNAVAILABLE
    assert finding.says.startswith("none of 10 cold cases tells anything: of 10 it is not known whether other work was there; ")
    one = of(altered(passes(), lambda taken: with_row(taken, contended=None), ["doubled"], "4096x4096x4096 bf16"))
    assert one.says.endswith("; left out: of 1 it is not known whether other work was there")


def test_compute_bound_cases_are_compared_in_cycles() -> None:
    """The clock fell by a tenth during the doubled pass; the cycles are the same."""
    colder = altered(passes(), lambda taken: with_row(slower(taken, 1.1), clock_hz=1.5e9 / 1.1), ["doubled"], "8192")
    assert of(colder).status is Status.OK


def test_a_clock_that_fell_between_warm_and_cold_tells_nothing_of_the_cache() -> None:
    """The cold cases bound by arithmetic ran at a lower clock than their warm twins: the same cycles."""
    level = altered(
        passes(), lambda taken: slower(taken, 1 + COLD_OVER_WARM) if " warm" in taken.name else taken, only=IN_CACHE
    )
    fallen = altered(
        level, lambda taken: with_row(slower(taken, 1.2), clock_hz=1.5e9 / 1.2) if " cold" in taken.name else taken, only="2048"
    )
    finding = of(fallen)
    assert finding.status is Status.WARN
    assert finding.figures["telling_cases"] == 0


def test_cases_beside_other_work_are_left_out() -> None:
    partly = altered(passes(), lambda taken: slower(taken, 0.8), ["first", "again"], f"{IN_CACHE} bf16 cold")
    busy = altered(partly, lambda taken: with_row(taken, contended=True), ["doubled"], f"{IN_CACHE} bf16 cold")
    finding = of(busy)
    assert finding.status is Status.OK
    assert finding.figures["cold_cases"] == 9


def test_where_all_were_beside_other_work_there_is_no_verdict() -> None:
    finding = of(altered(passes(), lambda taken: with_row(taken, contended=True), ["again"]))
    assert finding.status is Status.UNAVAILABLE
    assert "repeat it on a quiet device" in finding.says


def test_a_calibration_beside_other_work_is_no_measure_of_memory() -> None:
    slow = altered(passes(), lambda taken: with_row(slower(taken, 3), contended=True), ["first"], "read")
    busy = altered(
        altered(slow, lambda taken: slower(taken, 3), ["first"], "copy"), lambda taken: slower(taken, 3), ["first"], "triad"
    )
    level = altered(busy, lambda taken: slower(taken, 1 + COLD_OVER_WARM) if " warm" in taken.name else taken, only=IN_CACHE)
    assert of(level).status is Status.WARN


def test_a_flush_that_cannot_be_doubled_says_why() -> None:
    finding = of(replace(passes(), doubled=(), undoubled="backend x has no option flush_factor"))
    assert (finding.status, finding.says) == (Status.UNAVAILABLE, "backend x has no option flush_factor")


def test_without_repeatability_one_percent_is_the_noise() -> None:
    drifted = altered(passes(), lambda taken: slower(taken, 1.008), ["doubled"])
    assert of(drifted, None).status is Status.OK
    assert repeat.repeatability([]) is None
