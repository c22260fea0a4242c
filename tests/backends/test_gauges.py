"""Gauges that remember: rates, totals, shared calls; and the readings of one window."""

import pytest

from backends.telemetry.gauges import Gauge, Missing, Rate, ReadingLost, Series, Shared, Since
from tests.backends.windows import Script, Ticking


def test_a_rate_needs_two_readings_and_starts_anew_with_a_window() -> None:
    clock = Ticking()
    rate = Rate(Script(10.0, 30.0, 1000.0, 1005.0), clock)
    assert rate.read() is None
    clock.now_s = 2.0
    assert rate.read() == 10.0
    rate.begin()  # what happened between two windows is in neither
    clock.now_s = 100.0
    assert rate.read() is None
    clock.now_s = 101.0
    assert rate.read() == 5.0


def test_a_total_that_wraps_leaves_one_rate_out_and_goes_on() -> None:
    clock = Ticking(step_s=1.0)
    rate = Rate(Script(4_294_967_000.0, 1_000.0, 1_500.0), clock)
    assert [rate.read(), rate.read(), rate.read()] == [None, None, 500.0]


def test_a_total_since_the_window_opened() -> None:
    since = Since(Script(7015.0, 7015.5, 7016.0, 7016.0))
    assert [since.read(), since.read()] == [0.0, 0.5]
    since.begin()
    assert [since.read(), since.read()] == [0.0, 0.0]


def test_a_total_that_was_reset_is_no_negative_time() -> None:
    since = Since(Script(5.0, 1.0))
    since.read()
    with pytest.raises(ReadingLost, match="reset"):
        since.read()


def test_one_call_serves_the_gauges_of_a_round() -> None:
    clock = Ticking()
    call = Script(1.0, 2.0)
    shared = Shared(call, fresh_s=0.002, clock_s=clock)
    assert [shared(), shared()] == [1.0, 1.0]
    clock.now_s = 0.02
    assert shared() == 2.0
    assert call.asked == 2


def test_a_reading_is_dated_at_the_middle_of_its_call() -> None:
    """The call that watches PCIe for 20 ms tells of the middle of them, not of their end."""
    clock = Ticking()

    def blocks() -> float:
        clock.now_s += 0.02
        return 5.0

    series = Series(Gauge(blocks), "bytes/s", began_s=0.0, clock_s=clock)
    clock.now_s = 1.0
    series.take()
    assert series.channel().times_s == (pytest.approx(1.01),)


def test_a_gauge_without_a_new_reading_adds_none() -> None:
    readings = iter([None, 3.0, None])
    series = Series(Gauge(lambda: next(readings)), "W")
    for _ in range(3):
        series.take()
    assert series.channel().values == (3.0,)


def test_a_failed_gauge_is_not_asked_again_in_its_window() -> None:
    asked = []

    def fails() -> float:
        asked.append(1)
        raise ReadingLost("Not Supported")

    series = Series(Gauge(fails), "W")
    series.take()
    series.take()
    series.close()
    assert len(asked) == 1
    assert series.channel().unavailable == "Not Supported"


def test_a_closing_reading_follows_another_or_is_not_taken() -> None:
    """A total of one reading would say 0 of a window that nobody watched."""
    total = Since(Script(1.0, 2.0))
    series = Series(Gauge(total.read, closing=True), "s")
    series.close()
    assert series.channel().unavailable == "the window ended before the first reading"
    series.take()
    series.close()
    assert series.channel().values == (0.0, 1.0)


def test_a_channel_that_is_missing_stays_so() -> None:
    series = Series(Missing("no such sensor"), "C")
    series.take()
    assert series.channel() == ("C", (), (), "no such sensor")
