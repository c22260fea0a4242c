"""One axis of seconds for everything that was read of a case, idle times between its windows cut short."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

LEAST_IDLE_S = 0.05  # shorter pauses are drawn as long as they were: telemetry itself reads every 20 ms
IDLE_SHARE = 0.1  # of the time in which something was taken; a pause that is no longer costs the figure little
IDLE_READINGS = 3  # without spans, so many missed readings in a row are a pause
GAP_WIDTH = 0.04  # of the drawn time, for one idle time
GAPS_WIDTH = 0.4  # and for all of them
LEAST_WIDTH = 0.01  # of the drawn time: a window of a single reading is seen too
TICKS = 6
INNER_WIDTH = 0.25  # of the axis: narrower stretches have a mark at their beginning only


class Stretch(NamedTuple):
    """A time without idle, and its place on the axis, which runs from 0 to 1."""

    began_s: float
    ended_s: float
    left: float
    right: float


class Tick(NamedTuple):
    """A mark at ``at`` (0 to 1) with its seconds in words; the first of a stretch matters more than those within."""

    at: float
    label: str
    first: bool


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Stretches in their order, all to one scale; between two of them time was idle and the axis is broken."""

    stretches: tuple[Stretch, ...]

    @property
    def gaps(self) -> list[tuple[float, float]]:
        """The breaks of the axis, as places from 0 to 1."""
        return [(before.right, after.left) for before, after in pairwise(self.stretches)]

    def at(self, time_s: float) -> float:
        """The place of a time, 0 to 1; what was read in an idle time lies at the end of the stretch before it."""
        stretch = self.stretches[self.stretch_of(time_s)]
        length_s = stretch.ended_s - stretch.began_s
        if length_s <= 0:
            return (stretch.left + stretch.right) / 2
        share = min(1.0, max(0.0, (time_s - stretch.began_s) / length_s))
        return stretch.left + share * (stretch.right - stretch.left)

    def stretch_of(self, time_s: float) -> int:
        """The index of the stretch that a time belongs to."""
        return max(0, bisect_right(self.stretches, time_s, key=lambda stretch: stretch.began_s) - 1)

    def cell(self, time_s: float, count: int) -> int:
        """Which of ``count`` equal parts of the axis a time falls into, always one of its own stretch."""
        inside = cells(self.stretches[self.stretch_of(time_s)], count)
        return min(inside[-1], max(inside[0], int(self.at(time_s) * count)))

    def ticks(self) -> list[Tick]:
        """The beginning of each stretch, and round seconds within it where there is room for several."""
        step_s = _round_step(sum(stretch.ended_s - stretch.began_s for stretch in self.stretches) / TICKS)
        digits = max(0, -math.floor(math.log10(step_s) + 1e-9))
        found = []
        for stretch in self.stretches:
            found.append(Tick(self.at(stretch.began_s), _seconds(stretch.began_s, digits + 1), True))
            if stretch.right - stretch.left < INNER_WIDTH:
                continue
            first = math.floor(stretch.began_s / step_s + 1e-6) + 1
            last = math.floor(stretch.ended_s / step_s + 1e-6)
            found += [Tick(self.at(n * step_s), _seconds(n * step_s, digits), False) for n in range(first, last + 1)]
        return found


def cells(stretch: Stretch, count: int) -> range:
    """The parts of an axis of ``count`` that a stretch lies in, one at least."""
    first = min(count - 1, round(stretch.left * count))
    return range(first, max(first + 1, round(stretch.right * count)))


def time_axis(spans_s: Iterable[tuple[float, float]], readings_s: Iterable[float]) -> TimeAxis | None:
    """Lay out the times at which samples (from, to) and readings were taken; ``None`` where there are none.

    Idle is a pause that is long beside the time in which something was taken.
    """
    spans, readings = sorted(spans_s), sorted(set(readings_s))
    if not spans and not readings:
        return None
    pause_s = _pause_s(spans, readings)
    merged = _merged(sorted([*spans, *((time_s, time_s) for time_s in readings)]), pause_s)
    return TimeAxis(_placed(merged))


def _pause_s(spans: Sequence[tuple[float, float]], readings: Sequence[float]) -> float:
    if spans:
        return max(LEAST_IDLE_S, IDLE_SHARE * sum(ended - began for began, ended in spans))
    steps = sorted(after - before for before, after in pairwise(readings))
    return max(LEAST_IDLE_S, IDLE_READINGS * steps[len(steps) // 2] if steps else 0.0)


def _merged(intervals: Iterable[tuple[float, float]], pause_s: float) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for began, ended in intervals:
        if found and began - found[-1][1] <= pause_s:
            found[-1] = (found[-1][0], max(found[-1][1], ended))
        else:
            found.append((began, ended))
    return found


def _placed(intervals: Sequence[tuple[float, float]]) -> tuple[Stretch, ...]:
    taken_s = sum(ended - began for began, ended in intervals) or 1.0
    gap_s = min(GAP_WIDTH, GAPS_WIDTH / max(1, len(intervals) - 1)) * taken_s
    widths_s = [max(ended - began, LEAST_WIDTH * taken_s) for began, ended in intervals]
    whole_s = sum(widths_s) + gap_s * (len(intervals) - 1)
    placed, left_s = [], 0.0
    for (began, ended), width_s in zip(intervals, widths_s, strict=True):
        placed.append(Stretch(began, ended, left_s / whole_s, min(1.0, (left_s + width_s) / whole_s)))
        left_s += width_s + gap_s
    return tuple(placed)


def _round_step(least_s: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is not below ``least_s``."""
    if least_s <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least_s))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least_s * (1 - 1e-9))


def _seconds(time_s: float, digits: int) -> str:
    text = f"{time_s:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
