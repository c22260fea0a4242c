"""A small chart of characters: how samples are distributed."""

import math
from collections.abc import Callable, Iterator, Sequence

EIGHTHS = " ▏▎▍▌▋▊▉█"


COMMON = 0.99  # of the samples share the axis where the others lie far beyond
FAR = 3.0  # times the length of the axis of the common ones, from which on a sample would press them together


def histogram(values: Sequence[float], label: Callable[[float], str], width: int, bins: int, blocks: bool) -> Iterator[str]:
    """One bar a bin, lowest values first, with the bin's lower edge and count; a single value is one bin.

    A few values far above the others have a line of their own, so that the others are not all in one bin.
    """
    low, high = min(values), max(values)
    common = _common(values)
    beyond = [value for value in values if value > common]
    bins = bins if common > low else 1
    step = (common - low) / bins or 1.0
    counts = [0] * bins
    for value in values:
        if value <= common:
            counts[min(bins - 1, int((value - low) / step))] += 1
    labels = [label(low + step * index) for index in range(bins)]
    edge, tally = max(map(len, labels)), len(str(max(counts)))
    room = max(8, width - edge - tally - 4)
    for text, count in zip(labels, counts, strict=True):
        yield f"{text:>{edge}} |{_bar(count / max(counts), room, blocks)} {count:>{tally}}"
    if beyond:
        yield f"beyond the axis, from {label(min(beyond))} to {label(high)}: {len(beyond)}"


def _common(values: Sequence[float]) -> float:
    """The end of the axis: the largest value, or what nearly all stay under where the largest would press them together.

    Up to one in a hundred may lie beyond, and always one.
    """
    ordered = sorted(values)
    allowed = max(1, len(ordered) - math.ceil(COMMON * len(ordered)))
    last = ordered[-1 - allowed] if len(ordered) > allowed + 1 else ordered[-1]
    return last if ordered[-1] - last > FAR * (last - ordered[0]) and last > ordered[0] else ordered[-1]


def _bar(share: float, room: int, blocks: bool) -> str:
    if not blocks:
        return ("#" * round(share * room)).ljust(room)
    whole, rest = divmod(round(share * room * 8), 8)
    return (EIGHTHS[8] * whole + (EIGHTHS[rest] if rest else "")).ljust(room)
