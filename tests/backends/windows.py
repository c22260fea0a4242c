"""Telemetry windows in tests: closed when what a test waits for has happened, without a clock to keep to."""

import time
from collections.abc import Callable, Mapping

from backends.telemetry.polled import PolledTelemetry
from suite.backend import Channel

PATIENCE_S = 30.0  # only a hang takes this long


def until(happened: Callable[[], bool]) -> None:
    """Wait for another thread to do something."""
    gives_up_s = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < gives_up_s, "nothing happened"
        time.sleep(0.001)


def window(telemetry: PolledTelemetry, happened: Callable[[], bool]) -> Mapping[str, Channel]:
    """One window, closed once ``happened``."""
    telemetry.start()
    until(happened)
    return telemetry.stop()


class Script:
    """A gauge's readings: each value once, then the last one again; counts how often it was asked."""

    def __init__(self, *values: float) -> None:
        self._values = values
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return self._values[min(self.asked, len(self._values)) - 1]


class Ticking:
    """A clock that moves by itself a little with each look, and as far as it is told."""

    def __init__(self, step_s: float = 0.0) -> None:
        self.now_s = 0.0
        self._step_s = step_s

    def __call__(self) -> float:
        self.now_s += self._step_s
        return self.now_s
