"""Windows of alternating rounds are joined into one course; power becomes joules; every channel has a unit."""

import pytest

from suite.backend import Channel, DeviceInfo
from suite.roofline import throttle
from suite.telemetry import FAMILIES, UNITS, NoTelemetry, joined, power_integral_j, unit_of


def test_rounds_follow_each_other_and_their_energy_adds_up():
    first = {"power": Channel("W", (0.0, 1.0), (600.0, 690.0)), "energy": Channel("J", (0.0, 2.5), (0.0, 1700.0))}
    second = {"power": Channel("W", (0.0,), (650.0,)), "energy": Channel("J", (0.0, 2.0), (0.0, 1300.0))}
    both = joined(joined({}, first, 0.0), second, 10.0)
    assert both["power"] == Channel("W", (0.0, 1.0, 10.0), (600.0, 690.0, 650.0))
    assert both["energy"] == Channel("J", (0.0, 4.5), (0.0, 3000.0))


def test_a_reading_missing_in_one_round_is_missing_with_its_reason():
    """A series that breaks off is a gap, never the last value repeated."""
    first = {"power": Channel("W", (0.0,), (600.0,))}
    lost = {"power": Channel("W", (), (), "GPU is lost")}
    assert joined(first, lost, 1.0)["power"] == Channel("W", (), (), "GPU is lost")
    assert joined(lost, first, 1.0)["power"].unavailable == "GPU is lost"


MASK = Channel("mask", (0.0, 1.0), (4.0, 0.0))
NAMED = {"throttle": MASK, "throttle.sw_power_cap": Channel("", (0.0, 1.0), (1.0, 0.0))}
LOST = {"throttle": Channel("mask", (), (), "GPU is lost")}


@pytest.mark.parametrize("windows", [(LOST, NAMED, NAMED), (NAMED, LOST, NAMED), (NAMED, NAMED, LOST)])
def test_a_throttle_mask_missing_in_one_window_leaves_no_reason_counted_over_the_others(windows):
    """A share of some of the windows would be shown as that of all, at times that are those of another window."""
    whole = {}
    for number, window in enumerate(windows):
        whole = joined(whole, window, 10.0 * number)
    assert set(whole) == set(NAMED)
    assert {(channel.values, channel.unavailable) for channel in whole.values()} == {((), "GPU is lost")}
    assert throttle(whole, None, DeviceInfo("fake", 0, "Fake", "f", 1)) is None


def test_reasons_read_in_every_window_are_shifted_and_counted_over_all():
    both = joined(NAMED, NAMED, 10.0)["throttle.sw_power_cap"]
    assert (both.times_s, both.values) == ((0.0, 1.0, 10.0, 11.0), (1.0, 0.0, 1.0, 0.0))


def test_a_total_without_a_reading_in_one_window_is_no_total():
    read, unread = Channel("s", (0.0, 2.0), (0.0, 0.5)), Channel("s", (), ())
    for windows in ((read, unread), (unread, read)):
        first, second = ({"violation.power": channel} for channel in windows)
        assert joined(first, second, 5.0)["violation.power"] == Channel("s", (), (), "not read in every window")
    one_sided = joined({"power": Channel("W", (0.0,), (600.0,))}, {"violation.power": read}, 5.0)
    assert {channel.unavailable for channel in one_sided.values()} == {"not read in every window"}


def test_no_telemetry_names_every_channel_and_its_reason():
    channels = NoTelemetry("no library").stop()
    assert set(channels) == set(UNITS)
    assert {channel.unavailable for channel in channels.values()} == {"no library"}


def test_times_under_a_limit_add_up_over_rounds():
    first = {"violation.power": Channel("s", (0.002, 2.0), (0.0, 0.5))}
    second = {"violation.power": Channel("s", (0.001, 1.0), (0.25, 0.75))}
    both = joined(first, second, 30.0)["violation.power"]
    assert (both.times_s, both.values) == ((0.0, pytest.approx(2.997)), (0.0, 1.0))


def test_joules_of_memory_add_up_too():
    channel = Channel("J", (0.0, 2.0), (0.0, 40.0))
    assert joined({"energy.dram": channel}, {"energy.dram": channel}, 5.0)["energy.dram"].values == (0.0, 80.0)


def test_a_channel_of_a_family_has_the_familys_unit():
    assert {family: unit_of(f"{family}.x") for family in FAMILIES} == FAMILIES
    assert unit_of("pcie_tx") == "bytes/s"
    with pytest.raises(KeyError):
        unit_of("no_such_channel")


@pytest.mark.parametrize(
    ("window_s", "joules"),
    [
        ((0.0, 3.0), 100 + 150 + 200),  # 100 W held before the first reading, 200 W after the last
        ((1.0, 2.0), 150.0),
        ((1.25, 1.75), 75.0),
        ((2.5, 3.5), 200.0),
    ],
)
def test_power_becomes_joules_by_the_trapezoid_rule(window_s, joules):
    power = Channel("W", (1.0, 2.0), (100.0, 200.0))
    assert power_integral_j(power, window_s) == pytest.approx(joules)


def test_the_integral_agrees_with_the_energy_that_was_used():
    """691 W for half of 10 s and 650 W after, read every 20 ms."""
    times_s = tuple(0.011 + 0.02 * index for index in range(499))
    power = Channel("W", times_s, tuple(691.0 if time_s < 5 else 650.0 for time_s in times_s))
    assert power_integral_j(power, (0.0, 10.0)) == pytest.approx(5 * 691 + 5 * 650, rel=1e-4)


def test_one_reading_is_no_integral():
    assert power_integral_j(Channel("W", (1.0,), (100.0,)), (0.0, 2.0)) is None
    assert power_integral_j(Channel("W", (), (), "no driver"), (0.0, 2.0)) is None
