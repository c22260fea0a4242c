"""Repeatability: in which unit, over which cases, and when it is too poor."""

from dataclasses import replace

import pytest

from suite.measure.others import LISTED_ELSEWHERE
from suite.selftest import repeat
from suite.selftest.record import Finding, Repeatability, Status
from suite.selftest.taken import Passes, Taken, told_by_nobody
from tests.selftest.material import altered, passes, slower, with_row


def of(whole: Passes) -> Finding:
    return repeat.finding(whole)


def known(whole: Passes) -> Repeatability:
    found = repeat.repeatability(repeat.pairs(whole))
    assert found is not None
    return found


def test_a_device_that_repeats_is_a_pass() -> None:
    finding = of(passes())
    assert finding.status is Status.OK
    assert finding.says.startswith("20 of 20 cases repeat within 1 %; worst ")
    assert finding.says.endswith(
        ", 0.2 % off; 95 in 100 within 0.2 % in cycles where arithmetic bounds them, whose times differ by up to 0.2 % as the "
        "clock moves, and 0.2 % in time elsewhere"
    )
    assert known(passes()) == Repeatability(pytest.approx(0.002), pytest.approx(0.002), True, 20)


def test_one_case_in_twenty_may_be_four_percent_off_and_is_named() -> None:
    whole = altered(passes(), lambda taken: slower(taken, 1.04), ["again"], "16x3840x3840 bf16 cold")
    finding = of(whole)
    assert finding.status is Status.OK
    assert "19 of 20 cases repeat within 1 %; worst 16x3840x3840 bf16 cold, 4.2 % off" in finding.says
    assert finding.figures["worst_case"] == "16x3840x3840 bf16 cold"


def test_two_in_twenty_are_a_warning() -> None:
    finding = of(altered(passes(), lambda taken: slower(taken, 1.04), ["again"], "16x3840x3840 bf16"))
    assert finding.status is Status.WARN
    assert "18 of 20 cases repeat within 1 %" in finding.says
    assert finding.says.endswith(" as the clock moves, and 4.2 % in time elsewhere")
    assert finding.figures["within_1_percent_share"] == pytest.approx(0.9)


def test_a_device_whose_runs_differ_by_more_than_a_tenth_fails() -> None:
    finding = of(altered(passes(), lambda taken: slower(taken, 1.15), ["again"], "4096"))
    assert finding.status is Status.FAIL
    assert finding.says.endswith("; 15 % off at the 95th percentile, two runs cannot be compared here")


def test_what_took_several_times_as_long_is_said_in_times() -> None:
    finding = of(altered(passes(), lambda taken: slower(taken, 30), ["again"], "4096"))
    assert "worst 4096x4096x4096 bf16 cold, 30.1 times apart; 95 in 100 within " in finding.says
    assert finding.says.endswith("; 30.1 times apart at the 95th percentile, two runs cannot be compared here")


@pytest.mark.parametrize("faster", [0.96, 1.04])
def test_a_difference_counts_either_way(faster: float) -> None:
    whole = altered(passes(), lambda taken: slower(taken, faster), ["again"], "8192")
    assert known(whole).cycles_rel == pytest.approx(abs(1.002 * faster - 1), abs=1e-3)


def test_a_compute_bound_case_repeats_in_cycles_while_the_clock_falls() -> None:
    """The second pass ran at a clock 8 % lower and took 8 % longer: the same cycles."""
    whole = altered(passes(), lambda taken: with_row(slower(taken, 1.08), clock_hz=1.5e9 / 1.08), ["again"], "8192")
    assert known(whole).cycles_rel == pytest.approx(0.002, abs=1e-6)
    assert of(whole).status is Status.OK


def test_a_memory_bound_case_repeats_in_bytes_per_second() -> None:
    whole = altered(passes(), lambda taken: with_row(slower(taken, 1.08), clock_hz=1.5e9 / 1.08), ["again"], "16x")
    found = known(whole)
    assert (found.cycles_rel, found.bytes_rel) == (pytest.approx(0.002), pytest.approx(0.08216))


def test_without_a_counter_arithmetic_is_compared_in_time_and_says_so() -> None:
    whole = altered(passes(), lambda taken: with_row(slower(taken, 1.08), clock_hz=None), ["again"], "8192x8192x8192 bf16 warm")
    found = known(whole)
    assert found.in_cycles is False
    assert of(whole).figures["compute_bound_in"] == "time"


def test_what_launching_bounds_is_left_out() -> None:
    whole = altered(passes(), lambda taken: with_row(slower(taken, 1.5), bound="launch"), ["first"], "2048")
    assert known(whole).cases == 16
    assert of(whole).status is Status.OK


def test_where_no_sheet_says_what_bounds_a_case_its_own_rates_do() -> None:
    unknown = altered(passes(), lambda taken: with_row(taken, bound="unknown"))
    moved = altered(unknown, lambda taken: slower(taken, 1.05), ["again"], "16x")
    assert (known(moved).cycles_rel, known(moved).bytes_rel) == (pytest.approx(0.002), pytest.approx(0.0521))


def test_only_cases_of_both_passes_count() -> None:
    whole = passes()
    assert known(replace(whole, again=whole.again[:6])).cases == 6


def test_nothing_measured_twice_is_unavailable() -> None:
    assert of(replace(passes(), again=())).status is Status.UNAVAILABLE


def test_memory_alone_has_no_cycles() -> None:
    def memory(taken: Taken) -> bool:
        return taken.row.bound == "memory"

    whole = passes()
    few = replace(whole, first=tuple(filter(memory, whole.first)), again=tuple(filter(memory, whole.again)))
    assert known(few) == Repeatability(None, pytest.approx(0.002), False, 8)


def beside_other_work(only: str, factor: float = 1.9) -> Passes:
    return altered(passes(), lambda taken: with_row(slower(taken, factor), contended=True), ["again"], only)


def test_what_was_measured_beside_other_work_is_left_out_and_said() -> None:
    whole = beside_other_work("4096")
    assert known(whole) == Repeatability(pytest.approx(0.002), pytest.approx(0.002), True, 16)
    finding = of(whole)
    assert finding.status is Status.OK
    assert finding.says.startswith("16 of 16 cases repeat within 1 %; worst ")
    assert finding.says.endswith(" in time elsewhere; left out: 4 were measured beside other work")
    assert (finding.figures["cases"], finding.figures["contended_left_out"]) == (16, 4)


def test_what_may_have_been_measured_beside_other_work_is_left_out_and_said() -> None:
    """A row of which nobody could tell was 78 times as slow as in the other pass, within 0.37 %, and set the repeatability."""
    whole = altered(passes(), lambda taken: with_row(slower(taken, 78), contended=None), ["again"], "4096")
    assert known(whole) == Repeatability(pytest.approx(0.002), pytest.approx(0.002), True, 16)
    finding = of(whole)
    assert finding.status is Status.OK
    assert finding.says.endswith("; left out: of 4 it is not known whether other work was there")
    assert (finding.figures["contended_left_out"], finding.figures["unknown_left_out"]) == (0, 4)


def test_where_contention_is_nowhere_known_no_repeatability_is() -> None:
    nowhere = altered(passes(), lambda taken: with_row(taken, contended=None))
    assert repeat.repeatability(repeat.pairs(nowhere)) is None
    finding = of(nowhere)
    assert finding.status is Status.UNAVAILABLE
    assert finding.says.startswith("of 20 of 20 cases it is not known whether other work was there: the rest is too little ")
    assert finding.says.endswith("; what is said of contention has why, and what to do")


def test_a_driver_that_never_names_processes_leaves_the_repeatability_and_the_assumption_is_said() -> None:
    """As in most containers: runs that agree say of themselves that nobody disturbed them."""
    nowhere = told_by_nobody(altered(passes(), lambda taken: with_row(taken, contended=None)))
    assert known(nowhere) == known(passes())
    finding = of(nowhere)
    assert finding.status is Status.OK
    assert finding.says.endswith(f"; that nobody else was there is assumed: {LISTED_ELSEWHERE}")
    assert finding.figures["unknown_left_out"] == 0


def test_where_it_tells_of_some_cases_no_other_is_assumed_to_have_been_alone() -> None:
    some = altered(passes(), lambda taken: with_row(taken, contended=None), ["again"])
    assert told_by_nobody(some) == some


def test_cycles_and_times_are_told_apart() -> None:
    """Under the power limit of an H200 times of one product differed by 2.9 %, its cycles by 0.03 %."""
    whole = altered(passes(), lambda taken: with_row(slower(taken, 1.027), clock_hz=1.5e9 / 1.027), ["again"], "8192")
    says, figures = of(whole).says, of(whole).figures
    assert "95 in 100 within 0.2 % in cycles where arithmetic bounds them, whose times differ by up to 2.9 % as" in says
    assert (figures["worst_time_rel"], figures["worst_rel"]) == (pytest.approx(0.0291, abs=1e-4), pytest.approx(0.002))


def test_where_nothing_is_counted_each_kind_has_its_time() -> None:
    blind = altered(passes(), lambda taken: with_row(taken, clock_hz=None))
    assert of(blind).says.endswith("; 95 in 100 within 0.2 % in time where arithmetic bounds them, and 0.2 % in time elsewhere")


@pytest.mark.parametrize(("only", "contended"), [("", 20), ("16x", 8)], ids=["all of them", "one kind"])
def test_where_other_work_left_too_little_nothing_is_known_and_it_is_said_what_to_do(only: str, contended: int) -> None:
    whole = beside_other_work(only)
    assert repeat.repeatability(repeat.pairs(whole)) is None
    finding = of(whole)
    assert finding.status is Status.UNAVAILABLE
    assert finding.says == (
        f"{contended} of 20 cases were measured beside other work: the rest is too little to tell, which takes 5 cases and "
        "half of each kind, bound by arithmetic and by memory; stop that work, or repeat the selftest when the device is idle"
    )


def test_half_of_each_kind_is_enough_and_less_is_not() -> None:
    """Twelve products are bound by arithmetic, eight by memory."""
    whole = altered(beside_other_work("16x3840"), lambda taken: with_row(taken, contended=True), ["first"], "8192")
    assert known(whole).cases == 12
    busier = altered(whole, lambda taken: with_row(taken, contended=True), only="4096")
    assert repeat.repeatability(repeat.pairs(busier)) is None
    assert repeat.undisturbed(repeat.pairs(busier)) == Repeatability(pytest.approx(0.002), pytest.approx(0.002), True, 8)
