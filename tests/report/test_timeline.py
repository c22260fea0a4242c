"""A measurement in the order of its time."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.backend import Channel
from suite.measure.timeline import sample_times_s
from suite.measurement import Measurement
from suite.outcome import Outcome
from suite.report.timeline import binned, cells_in_order, cells_of, timeline, uncounted
from tests.report.recordings import burst, sustained, untimed


def test_a_case_without_samples_has_no_timeline():
    assert timeline(Measurement(Outcome.CRASHED)) is None


def test_every_kept_sample_has_its_time_and_its_seconds():
    measured = burst(1.4e-3)
    found = timeline(measured)
    assert list(found.launches.times_s) == sample_times_s(measured.samples)
    assert found.launches.values[0] == measured.samples.durations_ns[0] * 1e-9
    assert found.timed


def test_a_store_that_does_not_say_when_keeps_its_readings_on_an_axis():
    found = timeline(untimed(burst(1.4e-3)))
    assert not found.timed
    assert found.axis is not None
    assert len(found.launches.values) == len(burst(1.4e-3).samples.durations_ns)


def test_the_devices_own_clock_comes_first_and_covers_the_time_before_each_value():
    found = timeline(sustained(1e-3))
    assert [(clock.name, clock.backward) for clock in found.clocks] == [("device clock", True), ("sm clock", False)]


def counted_over_samples(measured):
    clocks_khz = tuple(1_300_000 + index for index in range(len(measured.samples.durations_ns)))
    return replace(measured, samples=replace(measured.samples, clocks_khz=clocks_khz))


def test_a_clock_that_was_counted_over_each_sample_takes_the_place_of_that_of_windows():
    """The latter counts the idle time between samples, when the clock rises, and is no clock that a sample ran at."""
    measured = counted_over_samples(burst(1.4e-3))
    found = timeline(measured)
    own, driver = found.clocks
    assert (own.name, own.of_samples, own.backward, driver.name) == ("device clock", True, False, "sm clock")
    assert own.times_s == found.launches.times_s
    assert own.values[:2] == (1.3e9, 1.300001e9)
    assert found.about_clocks.startswith("the device clock is counted over each sample")


def test_where_it_is_not_known_when_samples_were_taken_windows_keep_theirs():
    own, _ = timeline(untimed(counted_over_samples(burst(1.4e-3)))).clocks
    assert own.backward


def test_what_was_not_read_and_what_is_no_number_is_left_out():
    telemetry = {
        "sm_clock": Channel("Hz", (), (), "not offered"),
        "power": Channel("W", (0.0, 0.1, math.nan), (math.nan, 50.0, 60.0)),
        "throttle.hot": Channel("", (0.0,), (math.inf,)),
    }
    found = timeline(replace(sustained(1e-3), telemetry=telemetry))
    assert found.clocks == ()
    assert (found.power.times_s, found.power.values) == ((0.1,), (50.0,))
    assert found.temperature is None
    assert found.throttle == ()


def test_a_power_cap_that_is_no_throttling_is_said_to_be_none():
    reasons = timeline(sustained(1e-3)).throttle
    assert "only where the driver's clock is under its maximum" in uncounted(reasons, "")
    assert uncounted(reasons, "sw_power_cap 40%") == ""


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=300), st.integers(1, 100))
def test_parts_of_an_axis_hold_every_value_between_their_ends(values, count):
    cells = cells_in_order(len(values), min(count, len(values)))
    bins = binned(values, cells)
    assert list(bins) == list(range(min(count, len(values))))
    for value, cell in zip(values, cells, strict=True):
        group = [each for each, other in zip(values, cells, strict=True) if other == cell]
        assert min(group) <= bins[cell].p05 <= bins[cell].median <= bins[cell].p95 <= max(group)
        assert min(group) <= value <= max(group)


def test_samples_of_different_windows_never_share_a_part():
    found = timeline(burst(1.4e-3))
    owners = {}
    for time_s, cell in zip(found.launches.times_s, cells_of(found.launches, found.axis, 120), strict=True):
        owners.setdefault(cell, set()).add(found.axis.stretch_of(time_s))
    assert {len(stretches) for stretches in owners.values()} == {1}
    assert sorted(set().union(*owners.values())) == [0, 1, 2, 3, 4]


def test_a_recording_looks_as_it_should():
    assert sum(span.ended_s - span.began_s for span in burst(1e-3).samples.spans) == pytest.approx(0.1)
