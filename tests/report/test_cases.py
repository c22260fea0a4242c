"""One case as the page holds it: small, true to its range, and complete."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.backend import Channel
from suite.measurement import Measurement
from suite.outcome import Outcome
from suite.report.cases import DIGITS, POINTS, SAMPLE_POINTS, STEPS, case_data, packed
from suite.report.floors import Ground
from suite.roofline import Ceilings
from tests.report.builders import CALIBRATION, SPEC, device, failed, result
from tests.report.recordings import alternating, burst, sustained, untimed

GROUND = Ground(Ceilings(device().info, SPEC), CALIBRATION)


def data(measured, row=None):
    return case_data(row or result(), measured, GROUND)


def unpacked(text, low, high):
    pairs = zip(text[::2], text[1::2], strict=True)
    return [low + (high - low) * (DIGITS.index(a) * len(DIGITS) + DIGITS.index(b)) / STEPS for a, b in pairs]


def size(case):
    return len(json.dumps(case, separators=(",", ":")))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_a_packed_value_is_right_to_a_step_of_its_range(values):
    low, high = min(values), max(values)
    found = unpacked(packed(values, low, high), low, high)
    assert found == pytest.approx(values, abs=(high - low) / STEPS * 0.51 + 1e-9)


def test_a_case_without_a_time_is_not_there():
    assert data(Measurement(Outcome.CRASHED), failed("crashed", "gone")) is None


@pytest.mark.parametrize("measured", [sustained(1e-4, 5.0), alternating(1e-3, 40), burst(1e-4)])
def test_no_series_has_more_points_than_the_page_says(measured):
    case = data(measured)
    assert len(case["samples"]["x"]) // 2 <= SAMPLE_POINTS <= POINTS
    tracks = [*case["clocks"], case["power"], case["temperature"]]
    assert {len(track["y"]) for track in tracks} <= {len(times) for times in case["times"]}
    assert max(map(len, case["times"])) // 2 <= POINTS


def test_two_hundred_readings_stay_as_they_are_and_more_are_thinned():
    few, many = (tuple(0.01 * index for index in range(count)) for count in (POINTS, 5 * POINTS))
    for times, kept in ((few, POINTS), (many, POINTS)):
        telemetry = {"power": Channel("W", times, tuple(100 + index % 7 for index in range(len(times))))}
        case = data(replace(sustained(1e-3, times[-1]), telemetry=telemetry))
        assert len(case["times"][case["power"]["at"]]) // 2 == pytest.approx(kept, abs=1)


def test_cases_of_a_run_take_two_kilobytes_on_average():
    kinds = [sustained(1.6e-3, 0.3), sustained(1e-4, 0.3), sustained(1e-4, 1.0), sustained(1e-5, 0.1), burst(1.4e-3)]
    assert sum(map(size, map(data, kinds))) / len(kinds) < 2300
    assert size(data(sustained(1e-3, 10.0))) < 5000


def test_channels_that_were_read_together_share_their_times():
    case = data(sustained(1e-3))
    assert {case["power"]["at"], case["temperature"]["at"], case["clocks"][1]["at"]} == {1}
    assert case["clocks"][0]["at"] == 0


def test_medians_and_ends_are_those_of_the_samples():
    measured = sustained(1e-3)
    case = data(measured)["samples"]
    low, high = case["range"]
    seconds = [each * 1e-9 for each in measured.samples.durations_ns]
    assert min(seconds) <= low <= high <= max(seconds)
    medians = unpacked(case["y"], low, high)
    assert medians[0] == pytest.approx(0.981e-3, rel=2e-3)
    assert medians[-1] == pytest.approx(1.0095e-3, rel=2e-3)


def test_a_throttle_reason_lasts_no_longer_than_its_window():
    measured = burst(1.4e-3)
    times = measured.telemetry["power"].times_s
    set_always = Channel("", times, (1.0,) * len(times))
    case = data(
        replace(measured, telemetry={"throttle.hw_thermal": set_always, "throttle.sync_boost": Channel("", (0.0,), (0.0,))})
    )
    ((name, share, runs),) = case["throttle"]
    assert (name, share, len(runs)) == ("hw thermal", "100.0 %", 5)
    ends = [(left, right) for _, _, left, right in case["axis"]]
    for (start, stop), (left, right) in zip(runs, ends, strict=True):
        assert left - 0.01 <= start < stop <= right + 0.01


def test_an_older_store_and_a_device_that_nothing_reads_are_said_to_be_so():
    assert data(untimed(burst(1.4e-3)))["ordered"] is True
    bare = data(replace(untimed(sustained(1e-3)), telemetry={}))
    assert "axis" not in bare
    assert bare["samples"]["y"]
    assert bare["missing"] == "clock and power were not read on this device"


def test_a_device_that_nothing_reads_says_why() -> None:
    silent = {"device_clock": Channel("Hz", (), (), "no counter"), "power": Channel("W", (), (), "RAPL is not readable")}
    said = data(replace(sustained(1e-3), telemetry=silent))["missing"]
    assert said == "device clock: no counter; power: RAPL is not readable"
    assert data(sustained(1e-3))["missing"] == ""


def test_power_beside_a_burst_is_said_to_lag() -> None:
    assert "before the sensor of power follows it" in data(burst(1.4e-3), result(regime="cold/burst/device"))["remark"]
    assert "sensor" not in data(sustained(1e-3))["remark"]


def test_what_was_taken_has_the_interval_and_the_spread() -> None:
    said = data(sustained(1e-3), result(p05_s=0.9e-3, p95_s=1.1e-3, p50_cycles=2.2e6, energy_j=0.5))["taken"]
    assert "its 95 % interval" in said
    assert "p05 900.0 µs, p95 1.100 ms" in said
    assert "2,200,000 cycles" in said
    assert "0.5 J" in said


def test_the_page_of_a_case_says_which_clock_is_counted() -> None:
    said = data(sustained(1e-3))["about_clocks"]
    assert "device clock is counted on the device" in said
    assert "fractions use the counted one" in said
