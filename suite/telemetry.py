"""The channels of telemetry, what follows from them, and the telemetry of a device that nothing reads."""

from bisect import bisect_left
from collections.abc import Mapping
from itertools import pairwise

from suite.backend import Channel

# What a backend reads again and again while a window is open, with each channel's unit.  A unit may say more than the
# table does where a reading is a mean over some time: then the channel says so.
POLLED = {
    "sm_clock": "Hz",
    "sm_clock_spread": "Hz",  # fastest less slowest, where parts of a device have clocks of their own
    "memory_clock": "Hz",
    "power": "W",
    "temperature": "C",
    "hotspot_temperature": "C",
    "memory_temperature": "C",
    "throttle": "mask",
    "memory_used": "bytes",
    "pcie_tx": "bytes/s",
    "pcie_rx": "bytes/s",
}
# A CPU is no device on PCIe and reports one temperature: that these are not read tells nothing of it.
NOT_OF_A_CPU = ("pcie_tx", "pcie_rx", "hotspot_temperature")
_OF_A_CPU = {"sm_clock": "core clock", "sm_clock_spread": "core clock spread"}
# What it counts: joules by the energy counter since the window's start, and the clock that the device counts itself.
COUNTED = {"energy": "J", "device_clock": "Hz"}
UNITS = {**POLLED, **COUNTED}
# Channels of one reason or part each, named ``<family>.<part>``; a device has only those that it can name.  ``throttle``
# holds 1 where a reading named the reason, else 0; ``violation`` the seconds since the window's start in which the reason
# held the clock down; ``energy`` the joules of a part that the channel ``energy`` leaves out.
FAMILIES = {"throttle": "", "violation": "s", "energy": "J"}
THROTTLE_PREFIX = "throttle."  # what the channel of each throttle reason begins with
NO_READING = "not read in every window"
# /proc/stat counts in ticks of 10 ms: over a shorter stretch nobody can tell whether others used a tenth of a CPU.
LOAD_SPAN_S = 0.2
TOTALS = ("energy", "violation")  # running totals since the window's start: two windows of them add up


def named(channel: str, of_cpu: bool) -> str:
    """A channel as people read it, ``sm clock``; the same of a CPU, which has cores."""
    plain = channel.replace("_", " ")
    return _OF_A_CPU.get(channel, plain) if of_cpu else plain


def unit_of(channel: str) -> str:
    """The unit of a channel by its name, of a family or not."""
    family, dot, _part = channel.partition(".")
    return FAMILIES[family] if dot else UNITS[channel]


def joined(before: Mapping[str, Channel], after: Mapping[str, Channel], gap_s: float) -> dict[str, Channel]:
    """Two windows of one case as one: readings follow each other, ``gap_s`` after the first window's start.

    Running totals add up, over the seconds they were watched; what was missing in either window stays missing.  ``before``
    is empty ahead of the first window.
    """
    if not before:
        return dict(after)
    units = {name: channel.unit for name, channel in {**before, **after}.items()}
    first, second = ({n: window.get(n) or _lacking(n, unit, window) for n, unit in units.items()} for window in (before, after))
    return {name: _joined(name, first[name], second[name], gap_s) for name in units}


def power_integral_j(power: Channel, window_s: tuple[float, float]) -> float | None:
    """Joules from readings of power (W) between two times of their window, by the trapezoid rule.

    The first and the last reading hold out to the ends.  ``None`` with fewer than two readings.
    """
    began_s, ended_s = window_s
    assert began_s < ended_s, "a window ends after it began"
    if len(power.values) < 2:
        return None
    inside = [time_s for time_s in power.times_s if began_s < time_s < ended_s]
    points = [(time_s, _at(power, time_s)) for time_s in (began_s, *inside, ended_s)]
    return sum((later_s - earlier_s) * (first + last) / 2 for (earlier_s, first), (later_s, last) in pairwise(points))


def _joined(name: str, before: Channel, after: Channel, gap_s: float) -> Channel:
    is_total = name.partition(".")[0] in TOTALS
    unread = NO_READING if is_total and not (before.values and after.values) else ""
    missing = before.unavailable or after.unavailable or unread
    if missing:
        return Channel(after.unit, (), (), missing)
    if is_total:
        watched_s = sum(channel.times_s[-1] - channel.times_s[0] for channel in (before, after))
        total = sum(channel.values[-1] - channel.values[0] for channel in (before, after))
        return Channel(after.unit, (0.0, watched_s), (0.0, total))
    times_s = before.times_s + tuple(time_s + gap_s for time_s in after.times_s)
    return Channel(after.unit, times_s, before.values + after.values)


def _lacking(name: str, unit: str, window: Mapping[str, Channel]) -> Channel:
    """A channel that one window has not: parts of a family have none where the family was not read."""
    family = window.get(name.partition(".")[0])
    return Channel(unit, (), (), (family.unavailable if family else "") or NO_READING)


def _at(channel: Channel, time_s: float) -> float:
    """The value at one time: a straight line between two readings, the outermost reading beyond them."""
    later = bisect_left(channel.times_s, time_s)
    if later in (0, len(channel.values)):
        return channel.values[min(later, len(channel.values) - 1)]
    earlier_s, earlier = channel.times_s[later - 1], channel.values[later - 1]
    share = (time_s - earlier_s) / (channel.times_s[later] - earlier_s)
    return earlier + share * (channel.values[later] - earlier)


class NoTelemetry:
    """Every channel unavailable for one ``reason``."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def start(self) -> None:
        """Nothing is read, so nothing begins."""

    def mark(self) -> None:
        """No clock is counted."""

    def stop(self) -> Mapping[str, Channel]:
        return {name: Channel(unit, (), (), self._reason) for name, unit in UNITS.items()}

    def now(self, channel: str) -> float | None:
        return None

    def other_processes(self) -> int | None:
        return None
