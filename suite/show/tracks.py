"""Quantities over time as rows of characters that share one axis: bands of samples, lines of readings, strips of yes and no."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from suite.measure.statistics import median, quantile
from suite.report.timeaxis import TimeAxis, cells
from suite.report.timeline import Bin, Track, binned, cells_of

HEIGHTS = " ▁▂▃▄▅▆▇█"
LOWS = "_-'"  # the same in three heights, where block characters are not welcome
FAR = 3.0  # a column is above the scale when it stands out by more than this many times the spread of the others
COMMON = 0.95  # of the columns set the scale


class Scale(NamedTuple):
    """The values of a panel's lowest and highest row."""

    low: float
    high: float

    def share(self, value: float) -> float:
        """0 at the low end, 1 at the high one; the middle where both are the same."""
        return (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5


def band_scale(bins: Mapping[int, Bin]) -> Scale:
    """From the lowest p05 to the highest p95, or to what nearly all columns reach where a few stand out far."""
    highs = [each.p95 for each in bins.values()]
    middle, common = median(each.median for each in bins.values()), quantile(highs, COMMON)
    far = max(highs) > middle + FAR * (common - middle) and common > middle
    return Scale(min(each.p05 for each in bins.values()), common if far else max(highs))


def band_rows(bins: Mapping[int, Bin], scale: Scale, columns: int, height: int, blocks: bool) -> list[str]:
    """Median of each column with its p05 to p95, highest row first; ``^`` on top where a column goes above the scale."""
    grid = [[" "] * columns for _ in range(height)]
    middle, between = ("━", "│") if blocks else ("*", ":")
    for column, each in bins.items():
        low, mid, high = (_row(scale.share(value), height) for value in (each.p05, each.median, each.p95))
        for row in range(low, high + 1):
            grid[row][column] = between
        if mid < height:
            grid[mid][column] = middle
        if scale.share(max(each.median, each.p95)) > 1:
            grid[height - 1][column] = "^"
    return ["".join(row) for row in reversed(grid)]


def line_rows(values: Mapping[int, float], scale: Scale, columns: int, height: int, blocks: bool) -> list[str]:
    """One value a column as a height above the panel's foot, highest row first."""
    steps = len(HEIGHTS) - 1 if blocks else len(LOWS)
    rows = [[" "] * columns for _ in range(height)]
    for column, value in values.items():
        level = min(height * steps, max(1, round(scale.share(value) * height * steps)))
        full, rest = divmod(level - 1, steps)
        rows[full][column] = HEIGHTS[rest + 1] if blocks else LOWS[rest]
        for below in range(full if blocks else 0):
            rows[below][column] = HEIGHTS[-1]
    return ["".join(row) for row in reversed(rows)]


def strip_row(values: Mapping[int, float], columns: int, blocks: bool) -> str:
    """Where a reason was set, where it was read and not set, and where nothing was read."""
    is_set, unset = ("█", "·") if blocks else ("#", ".")
    return "".join(" " if column not in values else is_set if values[column] else unset for column in range(columns))


def by_column(track: Track, axis: TimeAxis, columns: int, of: Callable[[list[float]], float] = fmean) -> dict[int, float]:
    """One reading a column (``of`` those in it), held until the next one within the same stretch, or back to the one before."""
    groups: dict[int, list[float]] = {}
    for column, value in zip(cells_of(track, axis, columns), track.values, strict=True):
        groups.setdefault(column, []).append(value)
    found = {column: of(values) for column, values in groups.items()}
    for stretch in axis.stretches:
        inside = cells(stretch, columns)
        held = None
        for column in reversed(inside) if track.backward else inside:
            held = found.get(column, held)
            if held is not None:
                found[column] = held
    return found


def samples_by_column(track: Track, axis: TimeAxis, columns: int) -> dict[int, Bin]:
    """The samples of each column."""
    return binned(track.values, cells_of(track, axis, columns))


def axis_rows(axis: TimeAxis, columns: int) -> tuple[str, str]:
    """The line of the axis, broken by ``//`` where time was idle, and the seconds beneath it."""
    taken = {column for stretch in axis.stretches for column in cells(stretch, columns)}
    line = ["-" if column in taken else "/" for column in range(columns)]
    labels = [" "] * columns
    for tick in sorted(axis.ticks(), key=lambda tick: not tick.first):
        column = min(columns - 1, round(tick.at * columns))
        start = min(column, columns - len(tick.label))
        if _free(labels, start, len(tick.label)):
            labels[start : start + len(tick.label)] = tick.label
            line[column] = "+"
    return "".join(line), "".join(labels).rstrip()


def _row(share: float, height: int) -> int:
    return min(height - 1, max(0, round(share * (height - 1))))


def _free(labels: Sequence[str], start: int, length: int) -> bool:
    """Whether a label fits with a blank on either side."""
    return start >= 0 and all(each == " " for each in labels[max(0, start - 1) : start + length + 1])
