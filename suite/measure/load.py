"""The load axis: short windows from idle, or sampling once clock and power have become steady."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from suite.backend import Channel, Sampler, Telemetry
from suite.measure.collected import Taken, take
from suite.measure.regimes import BRIEF_SHARE, Reading, settled
from suite.measure.statistics import median
from suite.settings import MeasureSettings

NS = 1e-9
STEP = 0.003  # of the clock: an H200 steps by 0.8 % and more
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


class Settled(NamedTuple):
    """Whether successive windows came to agree, and whether the device's clock, counted over samples, moved at their end."""

    steady: bool
    clock_moves: bool


def settle(sampler: Sampler, telemetry: Telemetry, settings: MeasureSettings, briefly: bool = False) -> Settled:
    """Run until successive windows, or means of several, agree, or ``steady_timeout_s`` has passed.

    ``briefly`` only restores the kernel's own load between alternating rounds.
    """
    if briefly:
        _, clocks_khz = _window(sampler, telemetry, settings.steady_window_s * BRIEF_SHARE)
        return Settled(True, clock_moves(clocks_khz))
    deadline = time.monotonic() + settings.steady_timeout_s
    windows = [_window(sampler, telemetry, settings.steady_window_s)]
    steady = False
    while time.monotonic() < deadline and not steady:
        windows.append(_window(sampler, telemetry, settings.steady_window_s))
        steady = settled([reading for reading, _ in windows], settings.steady_tolerance)
    return Settled(steady, clock_moves([clock for _, clocks_khz in windows[-2:] for clock in clocks_khz]))


def clock_moves(clocks_khz: Sequence[int]) -> bool:
    """Whether the clocks counted over samples differ by what is a step; false where none was counted."""
    if not clocks_khz:
        return False
    ordered = sorted(clocks_khz)
    few = len(ordered) // 20  # at either end: a sample that was held up tells of no step
    return ordered[-1 - few] - ordered[few] > STEP * ordered[len(ordered) // 2]


def _window(sampler: Sampler, telemetry: Telemetry, seconds: float) -> tuple[Reading, Sequence[int]]:
    """One window's means, and the clock over each of its samples."""
    ends = time.monotonic() + seconds
    count = 1
    durations: list[int] = []
    clocks_khz: list[int] = []
    clocks: list[float] = []
    powers: list[float] = []
    while time.monotonic() < ends:
        taken = take(sampler, count)
        durations.extend(taken.durations_ns)
        clocks_khz.extend(taken.clocks_khz)
        per_sample_s = max(taken.elapsed_s / count, 1e-9)
        count = max(1, int(seconds / CHUNKS_PER_WINDOW / per_sample_s))
        _append(clocks, telemetry.now("sm_clock"))
        _append(powers, telemetry.now("power"))
    return Reading(median(durations) * NS / sampler.launches, _mean(clocks), _mean(powers)), clocks_khz


def _append(values: list[float], reading: float | None) -> None:
    if reading is not None:
        values.append(reading)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
