"""Windows of alternating rounds are joined into one course."""

from suite.backend import Channel
from suite.telemetry import UNITS, NoTelemetry, joined


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


def test_no_telemetry_names_every_channel_and_its_reason():
    channels = NoTelemetry("no library").stop()
    assert set(channels) == set(UNITS)
    assert {channel.unavailable for channel in channels.values()} == {"no library"}
