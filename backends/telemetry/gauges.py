"""Gauges: how one channel of telemetry is read, and the readings of one window."""

import time
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from suite.backend import Channel

T = TypeVar("T")
CLOCK_S = time.perf_counter
# Calls that serve several channels are made once for all of them in a round; drivers refresh no faster than this.
SHARED_S = 0.002


class ReadingLost(Exception):
    """A gauge that was offered cannot be read; the message says why in one line."""


def _nothing() -> None:
    """Most gauges remember nothing from one reading to the next."""


class Gauge(NamedTuple):
    """How to read one channel, in the channel's unit.

    ``read`` returns ``None`` while there is no new reading.  ``begin`` is called as a window opens, where ``read``
    remembers earlier readings.  ``unit`` replaces the channel's own where it must say more.  A ``slow`` gauge may block:
    it is read off the thread that reads the others.  A ``closing`` one is read once more as the window closes.
    """

    read: Callable[[], float | None]
    unit: str = ""
    slow: bool = False
    closing: bool = False
    begin: Callable[[], None] = _nothing


class Missing(NamedTuple):
    """A channel that this device does not offer."""

    reason: str


class Rate:
    """What a running total gains in a second, between two readings."""

    def __init__(self, total: Callable[[], float], clock_s: Callable[[], float] = CLOCK_S) -> None:
        self._total, self._clock_s = total, clock_s
        self._last: tuple[float, float] | None = None

    def begin(self) -> None:
        self._last = None

    def read(self) -> float | None:
        """The rate since the last reading; ``None`` on the first, and where the total fell because it wrapped."""
        at_s, total = self._clock_s(), self._total()
        last, self._last = self._last, (at_s, total)
        if last is None or at_s <= last[0] or total < last[1]:
            return None
        return (total - last[1]) / (at_s - last[0])


class Since:
    """What a running total has gained since the window's first reading."""

    def __init__(self, total: Callable[[], float]) -> None:
        self._total = total
        self._first: float | None = None

    def begin(self) -> None:
        self._first = None

    def read(self) -> float:
        total = self._total()
        if self._first is None:
            self._first = total
        elif total < self._first:
            raise ReadingLost("the counter fell: it was reset within the window")
        return total - self._first


class Shared(Generic[T]):
    """One call for several gauges: its result is given again for ``fresh_s``."""

    def __init__(self, read: Callable[[], T], fresh_s: float = SHARED_S, clock_s: Callable[[], float] = CLOCK_S) -> None:
        self._read, self._fresh_s, self._clock_s = read, fresh_s, clock_s
        self._held: tuple[float, T] | None = None

    def __call__(self) -> T:
        held = self._held
        if held is None or self._clock_s() - held[0] > self._fresh_s:
            held = self._held = (self._clock_s(), self._read())
        return held[1]


class Series:
    """The readings of one gauge in one window that began at ``began_s``, each at the middle of the call that gave it."""

    def __init__(self, gauge: Gauge | Missing, unit: str, began_s: float = 0.0, clock_s: Callable[[], float] = CLOCK_S) -> None:
        self._gauge = gauge
        self._unit = unit
        self.began_s, self._clock_s = began_s, clock_s
        self.unavailable = gauge.reason if isinstance(gauge, Missing) else ""
        self._times_s: list[float] = []
        self._values: list[float] = []

    @property
    def latest(self) -> float | None:
        return self._values[-1] if self._values and not self.unavailable else None

    def take(self) -> None:
        """Read once; a gauge that fails is dropped with its reason, and what it gave before is kept out."""
        if self.unavailable or isinstance(self._gauge, Missing):
            return
        before_s = self._clock_s()
        try:
            value = self._gauge.read()
        except ReadingLost as error:
            self.unavailable = str(error)
            return
        if value is not None:
            self._times_s.append((before_s + self._clock_s()) / 2 - self.began_s)
            self._values.append(value)

    def close(self) -> None:
        """Take the last reading of a gauge that wants one; a total with one reading alone would tell nothing."""
        if isinstance(self._gauge, Gauge) and self._gauge.closing and self._values:
            self.take()

    def channel(self) -> Channel:
        reason = self.unavailable or ("" if self._values else "the window ended before the first reading")
        if reason:
            return Channel(self._unit, (), (), reason)
        return Channel(self._unit, tuple(self._times_s), tuple(self._values))
