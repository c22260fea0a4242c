"""The driver's clock against the device's own counter."""

from dataclasses import replace

import pytest

from suite.backend import Channel
from suite.selftest import clock
from suite.selftest.record import Finding, Status
from suite.selftest.taken import Passes
from tests.selftest.material import CLOCK_HZ, INFO, altered, passes, telemetry, with_telemetry


def of(whole: Passes) -> Finding:
    return clock.finding(whole, INFO)


def reading(**values: float) -> Passes:
    return altered(passes(), lambda taken: with_telemetry(taken, telemetry(**values)))


def test_clocks_that_agree_are_a_pass() -> None:
    finding = of(reading(sm_clock=1.01 * CLOCK_HZ))
    assert (finding.status, finding.figures["driver_over_counter"]) == (Status.OK, pytest.approx(1.01))


@pytest.mark.parametrize(("ratio", "side"), [(1.10, "10 % above"), (0.9, "10 % below")])
def test_a_driver_that_reads_ten_percent_off_is_a_warning(ratio: float, side: str) -> None:
    finding = of(reading(sm_clock=ratio * CLOCK_HZ))
    assert finding.status is Status.WARN
    assert finding.says == (
        "under load the device's own counter had 1500 MHz; where it had 1500 MHz the driver's clock read "
        f"{1500 * ratio:.0f} MHz, {side} it: judge by the counter, not by the driver"
    )


def test_the_clocks_that_are_compared_are_shown_in_mhz_and_are_the_figures() -> None:
    whole = altered(
        reading(sm_clock=1.01 * CLOCK_HZ),
        lambda taken: with_telemetry(taken, telemetry(sm_clock=1.818e9, device_clock=1.8e9)), ["again"], "16x",
    )  # fmt: skip
    finding = of(whole)
    assert finding.says == (
        "under load the device's own counter had 1500 to 1800 MHz; where it had 1500 MHz the driver's clock read 1515 MHz, "
        "within 2 %"
    )
    assert (finding.figures["counter_clock_hz"], finding.figures["driver_clock_hz"]) == (1.5e9, pytest.approx(1.515e9))


def test_a_counter_above_the_maximum_clock_is_wrong() -> None:
    finding = of(reading(sm_clock=1.98e9, device_clock=2.2e9))
    assert finding.status is Status.FAIL
    assert "2.20 GHz, above its maximum of 1.98 GHz" in finding.says


def test_a_device_that_does_not_say_its_maximum_is_judged_by_the_ratio_alone() -> None:
    whole = reading(sm_clock=1.98e9, device_clock=1.98e9)
    assert clock.finding(whole, replace(INFO, max_clock_hz=None)).status is Status.OK


def test_bursts_and_the_calibration_are_not_asked() -> None:
    """Their windows are shorter than the driver's readings are apart, or hold no load."""
    whole = altered(
        passes(), lambda taken: with_telemetry(taken, telemetry(sm_clock=3e9)), ["load"], "8192x8192x8192 bf16 cold burst"
    )
    whole = altered(whole, lambda taken: with_telemetry(taken, telemetry(sm_clock=3e9)), ["first"], "read")
    finding = of(whole)
    assert finding.figures["highest_driver_over_counter"] == pytest.approx(1.0)


@pytest.mark.parametrize("missing", ["device_clock", "sm_clock"])
def test_one_clock_alone_is_no_comparison(missing: str) -> None:
    gone = Channel("Hz", (), (), f"nothing reads the {missing}")
    whole = altered(passes(), lambda taken: with_telemetry(taken, {**taken.measurement.telemetry, missing: gone}))
    finding = of(whole)
    assert finding.status is Status.UNAVAILABLE
    assert finding.says.endswith(f"cannot be compared: nothing reads the {missing}")
