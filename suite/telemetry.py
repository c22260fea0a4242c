"""The channels of telemetry, and the telemetry of a device that nothing reads."""

from collections.abc import Mapping

from suite.backend import Channel

# What a backend polls while a window is open, with each channel's unit.
POLLED = {
    "sm_clock": "Hz",
    "memory_clock": "Hz",
    "power": "W",
    "temperature": "C",
    "throttle": "mask",
    "memory_used": "bytes",
}
# What it reads at a window's ends: the energy counter, and the clock that the device counts itself.
COUNTED = {"energy": "J", "device_clock": "Hz"}
UNITS = {**POLLED, **COUNTED}


def joined(before: Mapping[str, Channel], after: Mapping[str, Channel], gap_s: float) -> dict[str, Channel]:
    """Two windows of one case as one: readings follow each other, ``gap_s`` after the first window's start.

    The energy counter's joules add up, over the seconds it was watched; what was missing in either window stays missing.
    """
    return {name: _joined(name, before[name], after[name], gap_s) if name in before else after[name] for name in after}


def _joined(name: str, before: Channel, after: Channel, gap_s: float) -> Channel:
    if before.unavailable or after.unavailable:
        return Channel(after.unit, (), (), before.unavailable or after.unavailable)
    if name == "energy":
        times = (0.0, before.times_s[-1] + after.times_s[-1])
        return Channel(after.unit, times, (before.values[0], before.values[-1] + after.values[-1] - after.values[0]))
    times_s = before.times_s + tuple(time_s + gap_s for time_s in after.times_s)
    return Channel(after.unit, times_s, before.values + after.values)


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
