"""Telemetry windows in tests: closed when what a test waits for has happened, without a clock to keep to."""

from collections.abc import Callable, Mapping

from backends.telemetry.polled import PolledTelemetry
from suite.backend import Channel
from tests.patience import until


def window(telemetry: PolledTelemetry, happened: Callable[[], bool]) -> Mapping[str, Channel]:
    """One window, closed once ``happened``."""
    telemetry.start()
    until(happened)
    return telemetry.stop()


def answered(telemetry: PolledTelemetry, *channels: str) -> Callable[[], bool]:
    """Whether each of ``channels``, or of all, has a reading or a reason; which thread is first is up to the host."""

    def happened() -> bool:
        series = [telemetry._series[name] for name in channels or telemetry._series]
        return all(each.unavailable or each.latest is not None for each in series)

    return happened


def answered_again(telemetry: PolledTelemetry) -> Callable[[], bool]:
    """Whether a whole round is over: what gave a reading in the first has given another."""

    def happened() -> bool:
        readings = [len(each._values) for each in telemetry._series.values() if not each.unavailable]
        return min(filter(None, readings), default=2) >= 2

    return happened


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
