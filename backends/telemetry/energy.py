"""Joules of a window by an energy counter, to better than the steps in which the counter moves.

A counter that moves every 100 ms says at most times what was used up to a moment before.  Read often, it shows between
which two readings it moved; between and beyond its moves a straight line tells what it would have said at the window's two
ends.  With a reading every 20 ms that is good to 10 ms at each end: about 1 % of a window of 2 s, where the bare values are
up to 5 % off.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from backends.telemetry.gauges import CLOCK_S, ReadingLost
from suite.backend import Channel

# A line beyond the outermost moves follows the mean power next to them, over this long.
END_SPAN_S = 0.5


class EnergyMeter(NamedTuple):
    """A counter of joules, how often it moves at least, and the shortest window that its steps allow.

    ``wrap_j`` is what it holds before it starts again from nothing; ``None`` where it does not.
    """

    read_j: Callable[[], float]
    shortest_window_s: float
    step_s: float
    wrap_j: float | None = None


class Reading(NamedTuple):
    """A counter's value and when it was read, seconds since the window's start."""

    at_s: float
    joules: float


class Move(NamedTuple):
    """The counter took a value: the most likely moment, and the span in which it must have been."""

    at_s: float
    joules: float
    width_s: float


def moves(readings: Sequence[Reading], step_s: float) -> list[Move]:
    """When a counter that moves every ``step_s`` took each value it showed, wherever that is told closely enough.

    It moved after the last reading of the old value and before the first of the new one, and no longer than a step
    before that.  The first reading has nothing before it; it counts where steps are as fine as readings.
    """
    found: list[Move] = []
    before_s, shown_j = -math.inf, math.nan
    for at_s, joules in readings:
        if joules != shown_j:
            earliest_s = max(before_s, at_s - step_s)
            found.append(Move((earliest_s + at_s) / 2, joules, at_s - earliest_s))
        before_s, shown_j = at_s, joules
    usual_s = sorted(move.width_s for move in found)[(len(found) - 1) // 2] if found else 0.0
    return [move for move in found if move.width_s <= 2 * usual_s]


def joules_at(moved: Sequence[Move], at_s: float) -> float:
    """The counter as a line through its moves; beyond the outermost with the slope next to it."""
    if at_s <= moved[0].at_s:
        near = [move for move in moved if move.at_s - moved[0].at_s <= END_SPAN_S]
        return moved[0].joules + _slope(near if len(near) > 1 else moved[:2]) * (at_s - moved[0].at_s)
    if at_s >= moved[-1].at_s:
        near = [move for move in moved if moved[-1].at_s - move.at_s <= END_SPAN_S]
        return moved[-1].joules + _slope(near if len(near) > 1 else moved[-2:]) * (at_s - moved[-1].at_s)
    later = next(index for index, move in enumerate(moved) if move.at_s >= at_s)
    return moved[later - 1].joules + _slope(moved[later - 1 : later + 1]) * (at_s - moved[later - 1].at_s)


def _slope(moved: Sequence[Move]) -> float:
    return (moved[-1].joules - moved[0].joules) / (moved[-1].at_s - moved[0].at_s)


class EnergyTrace:
    """The readings of a meter in one window that began at ``began_s``; read often, and once more as the window closes."""

    def __init__(self, meter: EnergyMeter, began_s: float = 0.0, clock_s: Callable[[], float] = CLOCK_S) -> None:
        self._meter = meter
        self.began_s, self._clock_s = began_s, clock_s
        self._readings: list[Reading] = []
        self._wrapped_j = 0.0
        self._lost = ""

    def take(self) -> None:
        if self._lost:
            return
        before_s = self._clock_s()
        try:
            joules = self._unwrapped(self._meter.read_j())
        except ReadingLost as error:
            self._lost = str(error)
            return
        self._readings.append(Reading((before_s + self._clock_s()) / 2 - self.began_s, joules))

    def close(self) -> None:
        """Read once more, so that the last reading is not before the window's end."""
        self.take()

    def channel(self, window_s: float) -> Channel:
        """Joules since the window's start, at its two ends; or why they cannot be told."""
        if self._lost:
            return Channel("J", (), (), self._lost)
        if window_s < self._meter.shortest_window_s:
            needed_s = self._meter.shortest_window_s
            return Channel(
                "J", (), (), f"the window of {window_s:.3g} s is under the {needed_s:g} s that the counter's steps need"
            )
        moved = moves(self._readings, self._meter.step_s)
        if len(moved) < 2:
            return Channel("J", (), (), f"the energy counter did not move in the window of {window_s:.3g} s")
        return Channel("J", (0.0, window_s), (0.0, joules_at(moved, window_s) - joules_at(moved, 0.0)))

    def _unwrapped(self, joules: float) -> float:
        joules += self._wrapped_j
        last_j = self._readings[-1].joules if self._readings else joules
        wrap_j = self._meter.wrap_j
        if joules < last_j and wrap_j is not None and last_j - joules > wrap_j / 2:
            self._wrapped_j += wrap_j
            joules += wrap_j
        if joules < last_j:
            raise ReadingLost("the energy counter fell: it was reset within the window")
        return joules
