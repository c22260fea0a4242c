"""Telemetry with the clock that the device counts itself, beside what its driver reports."""

import time
from collections.abc import Mapping
from typing import Any, Protocol

from suite.backend import Channel, Telemetry


class CountedWindow(Protocol):
    """One stretch of work as the device's counters saw it."""

    @property
    def hz(self) -> float: ...


class Clock(Protocol):
    """Counters on the device, read by work that is enqueued like any other."""

    def mark(self) -> None: ...

    def windows(self) -> Any:
        """Every stretch between an odd mark and the next; waits for the device."""
        ...


class ClockedTelemetry:
    """``inner`` and a channel ``device_clock``: one value for each stretch of work between two marks."""

    def __init__(self, inner: Telemetry, clock: Clock) -> None:
        self._inner, self._clock = inner, clock
        self._began_s = 0.0
        self._marked_s: list[float] = []

    def start(self) -> None:
        self._marked_s = []
        self._clock.windows()  # forget the marks of a window that was given up; it waits, so the window opens after it
        self._inner.start()
        self._began_s = time.perf_counter()

    def mark(self) -> None:
        self._clock.mark()
        self._marked_s.append(time.perf_counter() - self._began_s)

    def stop(self) -> Mapping[str, Channel]:
        channels = dict(self._inner.stop())
        values = tuple(window.hz for window in self._clock.windows())
        reason = "" if values else "no stretch of work was marked"
        return {**channels, "device_clock": Channel("Hz", tuple(self._marked_s[1::2][: len(values)]), values, reason)}

    def now(self, channel: str) -> float | None:
        return self._inner.now(channel)

    def other_processes(self) -> int | None:
        return self._inner.other_processes()
