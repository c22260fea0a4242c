"""Clock: what the driver reports against what the device counts itself, over the same sustained windows."""

from collections.abc import Sequence
from typing import NamedTuple

from suite.backend import DeviceInfo
from suite.report.words import si
from suite.roofline import PHYSICAL_MARGIN, mean
from suite.selftest.channels import why_missing
from suite.selftest.record import Finding, Status
from suite.selftest.taken import Passes
from suite.selftest.words import per_cent

NAME = "clock"
AGREES = 0.02


class Window(NamedTuple):
    """Mean clocks of one sustained window of a product, Hz."""

    driver_hz: float
    counter_hz: float

    @property
    def ratio(self) -> float:
        return self.driver_hz / self.counter_hz


def finding(passes: Passes, info: DeviceInfo) -> Finding:
    """Warns where the driver's clock is over 2 % off the counter's; fails where the counter passes the device's maximum."""
    windows = _windows(passes)
    if not windows:
        missing = why_missing(list(passes), "device_clock") or why_missing(list(passes), "sm_clock")
        return Finding(NAME, Status.UNAVAILABLE, f"the driver's clock and the device's own cannot be compared: {missing}")
    typical = sorted(windows, key=lambda window: window.ratio)[len(windows) // 2]
    counted_hz = [window.counter_hz for window in windows]
    figures = {
        "driver_over_counter": typical.ratio,
        "lowest_driver_over_counter": min(window.ratio for window in windows),
        "highest_driver_over_counter": max(window.ratio for window in windows),
        "driver_clock_hz": typical.driver_hz,
        "counter_clock_hz": typical.counter_hz,
        "lowest_counter_clock_hz": min(counted_hz),
        "highest_counter_clock_hz": max(counted_hz),
        "max_clock_hz": info.max_clock_hz,
        "windows": len(windows),
    }
    status, says = _judged(typical, counted_hz, info.max_clock_hz)
    return Finding(NAME, status, says, figures)


def _windows(passes: Passes) -> list[Window]:
    found = []
    for taken in passes.timed:
        telemetry = taken.measurement.telemetry
        driver_hz, counter_hz = mean(telemetry.get("sm_clock")), mean(telemetry.get("device_clock"))
        if taken.row.load == "sustained" and taken.row.job == "gemm" and driver_hz and counter_hz:
            found.append(Window(driver_hz, counter_hz))
    return found


def _judged(typical: Window, counted_hz: Sequence[float], max_hz: float | None) -> tuple[Status, str]:
    highest_hz = max(counted_hz)
    if max_hz is not None and highest_hz > PHYSICAL_MARGIN * max_hz:
        return Status.FAIL, (
            f"the device's counter says {si(highest_hz, 'Hz')}, above its maximum of {si(max_hz, 'Hz')}: "
            "fractions at the clock are wrong"
        )
    off = abs(typical.ratio - 1)
    ends = dict.fromkeys(f"{hz / 1e6:.0f}" for hz in (min(counted_hz), highest_hz))
    range_ = f"under load the device's own counter had {' to '.join(ends)} MHz"
    both = f"where it had {_mhz(typical.counter_hz)} the driver's clock read {_mhz(typical.driver_hz)}"
    if off <= AGREES:
        return Status.OK, f"{range_}; {both}, within {per_cent(AGREES)}"
    side = "above" if typical.ratio > 1 else "below"
    return Status.WARN, f"{range_}; {both}, {per_cent(off)} {side} it: judge by the counter, not by the driver"


def _mhz(hz: float) -> str:
    return f"{hz / 1e6:.0f} MHz"
