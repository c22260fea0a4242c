"""Limits of a clock that firmware counts in samples: how many it took, and in how many the limit was active."""

from collections.abc import Callable

from backends.telemetry.gauges import CLOCK_S, ReadingLost
from backends.telemetry.reasons import AMD


class ActiveLimits:
    """Which limits were active since the firmware's last sample, as a mask of ``reasons.AMD``."""

    def __init__(self, residency: Callable[[str], tuple[float, float]]) -> None:
        self._residency = residency
        self._last: dict[str, tuple[float, float]] = {}

    def begin(self) -> None:
        self._last = {}

    def read(self) -> float | None:
        """``None`` until the firmware has sampled anew since the last reading; limits it does not count are left out."""
        counts = self._counts()
        last = self._last
        known = counts.keys() & last.keys()
        if known and all(counts[name][1] == last[name][1] for name in known):
            return None
        self._last = counts
        return (
            float(sum(bit for bit, name in AMD.items() if name in known and counts[name][0] > last[name][0])) if known else None
        )

    def _counts(self) -> dict[str, tuple[float, float]]:
        counts: dict[str, tuple[float, float]] = {}
        lost = ""
        for name in AMD.values():
            try:
                counts[name] = self._residency(name)
            except ReadingLost as error:
                lost = str(error)
        if not counts:
            raise ReadingLost(lost)
        return counts


class HeldDown:
    """Seconds since the window's first reading in which a limit was active: its share of the firmware's samples."""

    def __init__(self, residency: Callable[[], tuple[float, float]], clock_s: Callable[[], float] = CLOCK_S) -> None:
        self._residency, self._clock_s = residency, clock_s
        self._first: tuple[float, float, float] | None = None

    def begin(self) -> None:
        self._first = None

    def read(self) -> float:
        active, samples = self._residency()
        if self._first is None:
            self._first = (self._clock_s(), active, samples)
        began_s, first_active, first_samples = self._first
        if active < first_active or samples < first_samples:
            raise ReadingLost("the counter fell: it was reset within the window")
        if samples == first_samples:
            return 0.0
        return (active - first_active) / (samples - first_samples) * (self._clock_s() - began_s)
