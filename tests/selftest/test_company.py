"""Contention, and cases that did not settle or converge."""

from suite.selftest import contention, settled
from suite.selftest.record import Status
from tests.selftest.material import altered, passes, with_row


def test_a_device_of_one_s_own_is_a_pass() -> None:
    finding = contention.finding(passes())
    assert (finding.status, finding.says) == (Status.OK, "nobody else used the device in 59 measurements")


def test_company_for_a_while_is_a_warning_with_the_cases() -> None:
    finding = contention.finding(altered(passes(), lambda taken: with_row(taken, contended=True), ["again"], "4096"))
    assert finding.status is Status.WARN
    assert "others used the device in 4 of 59 measurements, such as 4096x4096x4096 fp8_e4m3 warm, " in finding.says
    assert "and 1 more: stop them, or measure when it is idle" in finding.says


def test_company_for_most_of_the_time_fails() -> None:
    finding = contention.finding(altered(passes(), lambda taken: with_row(taken, contended=True), ["first", "doubled"]))
    assert finding.status is Status.FAIL


def test_what_cannot_be_told_is_no_pass() -> None:
    assert contention.finding(altered(passes(), lambda taken: with_row(taken, contended=None))).status is Status.UNAVAILABLE
    partly = contention.finding(altered(passes(), lambda taken: with_row(taken, contended=None), ["load"]))
    assert partly.figures["unknown"] == 4
    assert partly.says.endswith("in 55 measurements; 4 measurements told nothing")


def test_cases_that_kept_moving_are_named_once() -> None:
    moving = altered(passes(), lambda taken: with_row(taken, steady=False), only="4096x4096x4096 bf16 cold")
    finding = settled.steady(moving)
    assert finding.status is Status.WARN
    assert finding.says == ("3 of 57 sustained cases did not settle in measure.steady_timeout_s: 4096x4096x4096 bf16 cold")
    assert settled.steady(passes()).says == "all 57 sustained cases settled in the time allowed"


def test_cases_that_stayed_wide_are_counted_and_the_widest_is_named() -> None:
    def wide(share: float):
        return lambda taken: with_row(
            taken, converged=False, interval_s=(taken.row.p50_s * (1 - share), taken.row.p50_s * (1 + share))
        )

    whole = altered(altered(passes(), wide(0.03), ["first"], "2048"), wide(0.08), ["again"], "16x3840x3840 bf16 warm")
    finding = settled.converged(whole)
    assert finding.status is Status.WARN
    assert finding.says == (
        "5 of 59 cases did not reach measure.target in measure.max_time_s; "
        "the widest is 16x3840x3840 bf16 warm at 8 % either way"
    )
