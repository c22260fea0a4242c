"""Telemetry of a device that nothing can read: every channel says why."""

from collections.abc import Mapping

from backends.telemetry.polled import UNITS
from suite.backend import Channel


class NoTelemetry:
    """Every channel unavailable for one ``reason``."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def start(self) -> None:
        """Nothing is read, so nothing begins."""

    def stop(self) -> Mapping[str, Channel]:
        return {name: Channel(unit, (), (), self._reason) for name, unit in {**UNITS, "energy": "J"}.items()}

    def now(self, channel: str) -> float | None:
        return None

    def other_processes(self) -> int | None:
        return None
