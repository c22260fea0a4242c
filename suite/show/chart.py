"""A small chart of characters: how samples are distributed."""

from collections.abc import Callable, Iterator, Sequence

EIGHTHS = " ▏▎▍▌▋▊▉█"


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


def _bar(share: float, room: int, blocks: bool) -> str:
    if not blocks:
        return ("#" * round(share * room)).ljust(room)
    whole, rest = divmod(round(share * room * 8), 8)
    return (EIGHTHS[8] * whole + (EIGHTHS[rest] if rest else "")).ljust(room)
