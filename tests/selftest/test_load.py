"""Burst against sustained: how far apart, and which cause the readings allow to name."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from suite.backend import Channel
from suite.selftest import load
from suite.selftest.record import Finding, Status
from suite.selftest.taken import Passes, Taken
from tests.selftest.material import INFO, altered, passes, slower, telemetry, with_row, with_telemetry


def held(share: float, power_w: float | None, only: str = "", **reasons: float) -> Passes:
    """Sustained ``share`` under burst, at so much power, with the driver naming reasons for so much of the time."""

    def change(taken: Taken) -> Taken:
        if taken.row.load != "sustained":
            return taken
        factor = 1 / (1 - share) / 1.01
        return with_telemetry(with_row(slower(taken, factor), power_w=power_w), telemetry(**reasons))

    return altered(passes(), change, ["load"], only)


def of(whole: Passes) -> Finding:
    return load.finding(whole, INFO)


def test_a_load_that_lasts_is_as_fast_as_it_began() -> None:
    finding = of(passes())
    assert finding.status is Status.OK
    assert finding.says == "sustained is 0.99 % under burst"


def test_a_cap_is_named_at_97_percent_of_the_limit() -> None:
    finding = of(held(0.18, 0.97 * 700, sw_power_cap=1.0))
    assert finding.status is Status.WARN
    assert finding.says == "sustained is 18 % under burst: power limit 700 W reached"
    assert finding.figures["bf16_sustained_under_burst_rel"] == pytest.approx(0.18)
    assert finding.figures["power_limit_w"] == 700


def test_a_cap_is_not_named_at_58_percent_although_the_driver_s_bit_is_set() -> None:
    finding = of(held(0.18, 0.58 * 700, sw_power_cap=1.0))
    assert finding.status is Status.WARN
    assert finding.says == "sustained is 18 % under burst: no reason reported, at 406 of 700 W"


def test_a_cap_that_took_some_of_the_clock_is_named_whatever_the_sensor_says() -> None:
    """An H200's fp16 product of 8192^3 drew 650 of 700 W in the mean of its window, at 1.40 of 1.98 GHz."""
    unmarked = held(0.18, 650, sw_power_cap=1.0)
    marked = altered(unmarked, lambda taken: with_row(taken, throttle="sw_power_cap 100%"), ["load"])
    assert of(unmarked).says == "sustained is 18 % under burst: no reason reported, at 650 of 700 W"
    assert of(marked).says == "sustained is 18 % under burst: power limit 700 W reached"


def test_heat_is_named_with_its_share_of_time() -> None:
    finding = of(held(0.10, 500, sw_thermal=0.4, sw_power_cap=1.0))
    assert finding.says == "sustained is 10 % under burst: sw_thermal 40 % of the time"
    assert finding.status is Status.WARN


@pytest.mark.parametrize("reason", load.HARDWARE)
def test_hardware_that_holds_the_clock_down_fails_even_where_burst_is_no_faster(reason: str) -> None:
    finding = of(held(0.0, 500, **{reason: 0.6}))
    assert finding.status is Status.FAIL
    assert f"{reason} 60 % of the time" in finding.says
    assert "cooling and power supply" in finding.says


def test_a_reason_that_shows_once_is_no_fault() -> None:
    assert of(held(0.0, 500, hw_thermal=0.01)).status is Status.OK


def test_formats_that_differ_are_told_apart() -> None:
    finding = of(held(0.18, 690, only="8192x8192x8192 bf16"))
    assert finding.says == (
        "sustained is 18 % under burst in bf16: power limit 700 W reached; sustained is 0.99 % under burst in fp8_e4m3"
    )
    assert finding.figures["fp8_e4m3_sustained_under_burst_rel"] == pytest.approx(0.0099, rel=0.01)


def test_what_the_intervals_cover_is_no_difference() -> None:
    def wide(taken: Taken) -> Taken:
        assert taken.row.p50_s is not None
        return with_row(taken, interval_s=(taken.row.p50_s * 0.9, taken.row.p50_s * 1.1))

    finding = of(altered(held(0.18, 690), wide, ["load"]))
    assert finding.status is Status.WARN
    assert finding.says == (
        "sustained is 18 % under burst, which tells nothing beside intervals of 20 %: "
        "repeat the selftest on a quiet device, with a longer measure.burst_window_s"
    )


def test_what_intervals_cover_that_are_narrow_enough_to_tell_is_a_pass() -> None:
    def wide(taken: Taken) -> Taken:
        assert taken.row.p50_s is not None
        return with_row(taken, interval_s=(taken.row.p50_s * 0.96, taken.row.p50_s * 1.04))

    finding = of(altered(held(0.06, 690), wide, ["load"]))
    assert (finding.status, finding.says) == (Status.OK, "sustained is 6 % under burst, within their intervals of 8 %")


def test_sustained_far_over_burst_says_that_the_burst_was_none() -> None:
    """Two cores, one of them busy: a burst of five launches took 32 ms each, of which sustained took 11."""
    finding = of(held(-1.88, 500))
    assert finding.status is Status.WARN
    assert finding.says == (
        "sustained is 188 % over burst: the burst was disturbed, or the clock had not risen in it; "
        "repeat the selftest on a quiet device, with a longer measure.burst_window_s"
    )


def test_hardware_that_holds_a_faster_load_down_is_not_called_slower() -> None:
    assert of(held(-0.05, 500, hw_thermal=0.6)).says.startswith(
        "sustained is 5 % over burst: hw_thermal 60 % of the time; look"
    )


def test_sustained_that_is_faster_says_so() -> None:
    finding = of(held(-0.05, 500))
    assert (finding.status, finding.says) == (Status.OK, "sustained is 5 % over burst")


def without_reasons(channels: Mapping[str, Channel]) -> dict[str, Channel]:
    kept = {name: channel for name, channel in channels.items() if not name.startswith("throttle")}
    return {**kept, "throttle": Channel("mask", (), (), "a CPU reports no reasons")}


def test_a_device_without_reasons_says_that_they_are_not_read() -> None:
    whole = altered(held(0.18, None), lambda taken: with_telemetry(taken, without_reasons(taken.measurement.telemetry)))
    finding = load.finding(whole, replace(INFO, power_limit_w=None))
    assert finding.says == "sustained is 18 % under burst: reasons are not read (a CPU reports no reasons)"


def test_other_work_beside_the_load_is_said() -> None:
    finding = of(altered(held(0.18, 690), lambda taken: with_row(taken, contended=True), ["load"]))
    assert finding.says.endswith("; other work was on the device, so that this may be its doing")
    quiet = of(altered(held(0.0, 500), lambda taken: with_row(taken, contended=True), ["load"]))
    assert quiet.status is Status.WARN


@pytest.mark.parametrize("missing", ["burst", "sustained"])
def test_one_of_the_two_is_no_comparison(missing: str) -> None:
    whole = passes()
    left = tuple(taken for taken in whole.load if taken.row.load != missing)
    assert of(replace(whole, load=left)).status is Status.UNAVAILABLE
