"""Small charts of characters: how samples are distributed, and how they (or a clock, or a power) went over time."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

EIGHTHS = " ▏▎▍▌▋▊▉█"
HEIGHTS = " ▁▂▃▄▅▆▇█"


def histogram(values: Sequence[float], label: Callable[[float], str], width: int, bins: int, blocks: bool) -> Iterator[str]:
    """One bar a bin, lowest values first, with the bin's lower edge and count; a single value is one bin."""
    low, high = min(values), max(values)
    bins = bins if high > low else 1
    step = (high - low) / bins or 1.0
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, int((value - low) / step))] += 1
    labels = [label(low + step * index) for index in range(bins)]
    edge, tally = max(map(len, labels)), len(str(max(counts)))
    room = max(8, width - edge - tally - 4)
    for text, count in zip(labels, counts, strict=True):
        yield f"{text:>{edge}} |{_bar(count / max(counts), room, blocks)} {count:>{tally}}"


def over_time(values: Sequence[float], label: Callable[[float], str], width: int, height: int, blocks: bool) -> Iterator[str]:
    """Values in their order, from their lowest to their highest; each column is the mean of its share of them."""
    low, high = min(values), max(values)
    labels = (label(high), label(low))
    edge = max(map(len, labels))
    columns = _means(values, max(8, width - edge - 2))
    levels = [(value - low) / (high - low) * height if high > low else height / 2 for value in columns]
    for row in range(height - 1, -1, -1):
        text = labels[0] if row == height - 1 else labels[1] if row == 0 else ""
        yield f"{text:>{edge}} |{''.join(_cell(level - row, row == 0, blocks) for level in levels)}"


def _bar(share: float, room: int, blocks: bool) -> str:
    if not blocks:
        return ("#" * round(share * room)).ljust(room)
    whole, rest = divmod(round(share * room * 8), 8)
    return (EIGHTHS[8] * whole + (EIGHTHS[rest] if rest else "")).ljust(room)


def _cell(level: float, lowest: bool, blocks: bool) -> str:
    """One character of a column that is ``level`` rows above this one's foot; the lowest row is never empty."""
    eighths = min(8, max(1 if lowest else 0, round(level * 8)))
    if blocks:
        return HEIGHTS[eighths]
    return "#" if eighths >= 4 else "." if lowest else " "


def _means(values: Sequence[float], columns: int) -> list[float]:
    count = min(columns, len(values))
    edges = [len(values) * index // count for index in range(count + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
