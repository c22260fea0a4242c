"""Telemetry is polled off the launching thread; what is not offered says why."""

import threading
import time

import pytest

from backends.telemetry.energy import EnergyMeter
from backends.telemetry.gauges import Gauge, Missing, ReadingLost, Since
from backends.telemetry.polled import PolledTelemetry
from suite.telemetry import UNITS
from tests.backends.windows import Script, window
from tests.patience import until

NO_COUNTER = Missing("no counter")


def polled(
    gauges: dict[str, Gauge | Missing], *, energy: EnergyMeter | Missing = NO_COUNTER, period_s: float = 0.001
) -> PolledTelemetry:
    return PolledTelemetry(gauges, energy, lambda: 0, period_s=period_s, slow_period_s=period_s)


def test_a_window_has_a_series_with_rising_times() -> None:
    counter = Script(*(float(value) for value in range(1000)))
    channels = window(polled({"power": Gauge(counter)}), lambda: counter.asked > 4)
    assert set(channels) == set(UNITS)
    power = channels["power"]
    assert len(power.values) >= 4
    assert list(power.values) == sorted(power.values)
    assert list(power.times_s) == sorted(power.times_s)
    assert power.times_s[0] >= 0
    assert (power.unit, power.unavailable) == ("W", "")


def test_readings_are_taken_off_the_launching_thread_and_slow_ones_on_a_thread_of_their_own() -> None:
    threads: dict[str, set[int]] = {"power": set(), "pcie_tx": set()}

    def read(name: str) -> float:
        threads[name].add(threading.get_ident())
        return 1.0

    gauges = {"power": Gauge(lambda: read("power")), "pcie_tx": Gauge(lambda: read("pcie_tx"), slow=True)}
    window(polled(dict(gauges)), lambda: all(threads.values()))
    assert len(threads["power"] | threads["pcie_tx"]) == 2
    assert threading.get_ident() not in threads["power"] | threads["pcie_tx"]
    assert not any(thread.name == "telemetry" for thread in threading.enumerate())


def test_a_device_without_slow_gauges_costs_one_thread() -> None:
    telemetry = polled({"power": Gauge(lambda: 1.0)})
    telemetry.start()
    assert sum(thread.name == "telemetry" for thread in threading.enumerate()) == 1
    telemetry.stop()


def test_missing_and_lost_channels_say_why() -> None:
    asked = []

    def lost() -> float:
        asked.append(1)
        raise ReadingLost("GPU is lost")

    telemetry = polled({"power": Gauge(lost), "throttle": Missing("not on this one")})
    channels = window(telemetry, lambda: bool(asked))
    assert channels["power"].unavailable == "GPU is lost"
    assert channels["throttle"].unavailable == "not on this one"
    assert channels["sm_clock"].unavailable == "not offered by this device"
    assert channels["energy"].unavailable == "no counter"
    assert telemetry.now("power") is None
    assert telemetry.now("sm_clock") is None


def test_a_gauge_that_fails_midway_is_a_failed_channel_not_its_last_value_repeated() -> None:
    readings = iter([5.0, 6.0])
    failed = threading.Event()

    def read() -> float:
        try:
            return next(readings)
        except StopIteration:
            failed.set()
            raise ReadingLost("Unknown Error") from None

    telemetry = polled({"power": Gauge(read)})
    telemetry.start()
    until(failed.is_set)
    until(lambda: telemetry.now("power") is None)
    assert telemetry.stop()["power"] == ("W", (), (), "Unknown Error")


def test_now_gives_the_latest_polled_value_and_asks_the_driver_only_outside_a_window() -> None:
    gate = threading.Event()
    first = threading.Event()

    def read() -> float:
        if threading.current_thread().name == "telemetry":
            first.set()
            gate.wait()
        return 1.0

    telemetry = polled({"sm_clock": Gauge(read)})
    assert telemetry.now("sm_clock") == 1.0
    telemetry.start()
    until(first.is_set)
    assert telemetry.now("sm_clock") is None  # the driver is busy: the launching thread does not wait for it
    gate.set()
    until(lambda: telemetry.now("sm_clock") == 1.0)
    telemetry.stop()


def test_a_gauge_that_blocks_does_not_hold_up_the_others() -> None:
    quick = Script(1.0)
    gate = threading.Event()

    def blocks() -> float:
        gate.wait()
        return 2.0

    telemetry = polled({"power": Gauge(quick), "pcie_tx": Gauge(blocks, slow=True)})
    telemetry.start()
    until(lambda: quick.asked > 20)
    gate.set()
    channels = telemetry.stop()
    assert len(channels["power"].values) > 20
    assert channels["pcie_tx"].values[0] == 2.0


def test_closing_waits_for_the_call_under_way_and_for_no_other() -> None:
    """A window that ends in the middle of a round of slow gauges leaves the rest of the round out."""
    telemetry: PolledTelemetry
    under_way = threading.Event()
    asked = []

    def blocks() -> float:
        under_way.set()
        until(telemetry._polls[-1]._closing.is_set)
        return 1.0

    def next_one() -> float:
        asked.append(1)
        return 1.0

    telemetry = polled({"pcie_tx": Gauge(blocks, slow=True), "pcie_rx": Gauge(next_one, slow=True)})
    channels = window(telemetry, under_way.is_set)
    assert channels["pcie_tx"].values == (1.0,)
    assert not asked
    assert channels["pcie_rx"].unavailable == "the window ended before the first reading"


def test_a_window_shorter_than_a_round_still_reads_each_of_the_quick_gauges_once() -> None:
    gauges = {"power": Gauge(lambda: 1.0), "throttle": Gauge(lambda: 0.0), "sm_clock": Gauge(lambda: 2.0)}
    telemetry = polled(dict(gauges), period_s=60)
    telemetry.start()
    channels = telemetry.stop()
    assert [len(channels[name].values) for name in ("power", "throttle", "sm_clock")] == [1, 1, 1]


def test_windows_do_not_mix() -> None:
    value = [1.0]
    asked = []

    def read() -> float:
        asked.append(1)
        return value[0]

    telemetry = polled({"power": Gauge(read)})
    for expected in (1.0, 2.0):
        value[0] = expected
        asked.clear()
        assert set(window(telemetry, lambda: bool(asked))["power"].values) == {expected}


def test_starting_again_gives_the_open_window_up() -> None:
    telemetry = polled({"power": Gauge(lambda: 1.0)})
    telemetry.start()
    telemetry.start()
    assert sum(thread.name == "telemetry" for thread in threading.enumerate()) == 1
    assert telemetry.stop()["power"].values


def test_a_total_is_read_as_the_window_opens_and_as_it_closes() -> None:
    total = Script(100.0, 100.25, 107.0, 107.5)
    since = Since(total)
    telemetry = PolledTelemetry(
        {"violation.power": Gauge(since.read, slow=True, closing=True, begin=since.begin)},
        NO_COUNTER,
        lambda: 0,
        slow_period_s=60,
    )
    first = window(telemetry, lambda: total.asked == 1)["violation.power"]
    second = window(telemetry, lambda: total.asked == 3)["violation.power"]
    assert (first.unit, first.values) == ("s", (0.0, 0.25))
    assert second.values == (0.0, 0.5)


def test_energy_is_what_the_counter_gained_between_the_windows_ends() -> None:
    counter = Script(*(100.0 + 2 * value for value in range(10_000)))
    channels = window(polled({}, energy=EnergyMeter(counter, 0.0, step_s=1e-4)), lambda: counter.asked > 20)
    energy = channels["energy"]
    assert (energy.unit, energy.values[0], energy.times_s[0]) == ("J", 0.0, 0.0)
    assert energy.values[1] > 0
    coarse = window(polled({}, energy=EnergyMeter(counter, 2.0, step_s=0.1)), lambda: True)
    assert "under the 2 s" in coarse["energy"].unavailable


def test_a_window_opens_once_its_threads_have_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are dated from the return of ``start``: readings that counted from before it would be late by that much."""
    begin, started_s = threading.Thread.start, []

    def late(thread: threading.Thread) -> None:
        begin(thread)
        time.sleep(0.02)
        started_s.append(time.perf_counter())

    monkeypatch.setattr(threading.Thread, "start", late)
    counter = Script(*(float(value) for value in range(1000)))
    telemetry = polled({"power": Gauge(counter)})
    telemetry.start()
    assert telemetry._began_s >= started_s[-1]
    until(lambda: counter.asked > 0)
    assert telemetry.stop()["power"].times_s[0] >= 0.0
