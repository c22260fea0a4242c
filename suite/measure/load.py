"""The load axis: short windows from idle, or sampling once clock and power have become steady."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from suite.backend import Channel, Sampler, Telemetry
from suite.measure.collected import Taken, take
from suite.measure.regimes import BRIEF_SHARE, Reading, settled
from suite.measure.statistics import median
from suite.settings import MeasureSettings

NS = 1e-9
CHUNKS_PER_WINDOW = 10  # readings that are averaged in one window of the steady-state detector


@dataclass(slots=True)
class Window:
    """One telemetry window: when it opened, on the monotonic clock, and once it is closed what was read in it."""

    opened_s: float
    telemetry: Mapping[str, Channel] = field(default_factory=dict)


@contextmanager
def watched(telemetry: Telemetry) -> Iterator[Window]:
    """Keep a window open over the block, with the device's own clock read at both ends.

    What is read counts from the moment at which ``start`` has begun the window: its return.  Before that it may have read a
    counter or a process table, for milliseconds.  A block that fails closes it too: what polls would go on beside every
    later case.
    """
    telemetry.start()
    window = Window(time.monotonic())
    try:
        telemetry.mark()
        yield window
        telemetry.mark()
    finally:
        window.telemetry = telemetry.stop()


def burst_windows(sampler: Sampler, telemetry: Telemetry, settings: MeasureSettings) -> Iterator[tuple[Taken, Window]]:
    """Take windows of at most ``burst_window_s`` from idle; the first sample of each is dropped.

    A sample that is longer than the window makes a window of its own, after the dropped one.  What lies between samples, a
    flush for instance, keeps the device from idling and counts.  Telemetry is read within the windows: over the idle times it
    would tell of a device that does nothing.
    """
    for index in range(settings.burst_windows):
        time.sleep(settings.burst_first_idle_s if index == 0 else settings.burst_idle_s)
        first_s = take(sampler, 1).elapsed_s
        with watched(telemetry) as window:
            taken = take(sampler, max(1, int((settings.burst_window_s - first_s) / max(first_s, 1e-9))))
        yield taken, window


def settle(sampler: Sampler, telemetry: Telemetry, settings: MeasureSettings, briefly: bool = False) -> bool:
    """Run until successive windows, or means of several, agree, or ``steady_timeout_s`` has passed; return whether they did.

    ``briefly`` only restores the kernel's own load between alternating rounds.
    """
    if briefly:
        _window(sampler, telemetry, settings.steady_window_s * BRIEF_SHARE)
        return True
    deadline = time.monotonic() + settings.steady_timeout_s
    windows = [_window(sampler, telemetry, settings.steady_window_s)]
    while time.monotonic() < deadline:
        windows.append(_window(sampler, telemetry, settings.steady_window_s))
        if settled(windows, settings.steady_tolerance):
            return True
    return False


def _window(sampler: Sampler, telemetry: Telemetry, seconds: float) -> Reading:
    ends = time.monotonic() + seconds
    count = 1
    durations: list[int] = []
    clocks: list[float] = []
    powers: list[float] = []
    while time.monotonic() < ends:
        began = time.monotonic()
        durations.extend(sampler.sample(count))
        per_sample_s = max((time.monotonic() - began) / count, 1e-9)
        count = max(1, int(seconds / CHUNKS_PER_WINDOW / per_sample_s))
        _append(clocks, telemetry.now("sm_clock"))
        _append(powers, telemetry.now("power"))
    return Reading(median(durations) * NS / sampler.launches, _mean(clocks), _mean(powers))


def _append(values: list[float], reading: float | None) -> None:
    if reading is not None:
        values.append(reading)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
