"""Axis ranges of the roofline: everything drawn stays inside, nothing above a roof is cut off."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from suite.report.roofs import Memory, Roof
from suite.report.words import TIMES
from suite.rows import ResultRow


class Span(NamedTuple):
    """A range on a logarithmic axis, in the axis's own unit."""

    low: float
    high: float

    @property
    def log10(self) -> list[float]:
        """As Plotly wants the range of a logarithmic axis."""
        return [math.log10(self.low), math.log10(self.high)]

    @property
    def decades(self) -> float:
        return math.log10(self.high / self.low)

    def samples(self, count: int) -> list[float]:
        """``count`` logarithmically spaced values, both ends included exactly."""
        ratio = self.high / self.low
        inner = (self.low * ratio ** (i / (count - 1)) for i in range(1, count - 1))
        return [self.low, *inner, self.high]


_LEVEL_PX, _CHARACTER_PX, _GAP_PX = 280, 7, 8  # the plot of a telephone, and what a tick's words take of it
_SHORT_DECADES, _LONG_DECADES, _DIGITS_DECADES, _MOST_DECADES = 2.5, 1.5, 6, 9
MINOR_PX = 3
LEAST_TICKS = 2  # with words: of one alone nobody could tell how far it is to another height
EMPTY = Span(0.1, 1e4)  # what is shown when there is neither a point nor a roof


def intensity_span(rows: Sequence[ResultRow], roofs: Sequence[Roof]) -> Span:
    """Half a decade around all points and ridge points, so that a single point still shows both sides of its ridge."""
    ridges = (roof.ridge for roof in roofs)
    return around([row.arithmetic_intensity for row in rows] + [ridge for ridge in ridges if ridge], below=3.0, above=4.0)


def rate_span(rows: Sequence[ResultRow], roofs: Sequence[Roof], intensities: Span, memory: Memory | None = None) -> Span:
    """From below the lowest point, or the highest ridge's memory roof where that is lower, to above the highest roof.

    ``memory`` is a memory roof without one of arithmetic: seen from its foot on, over the points under it.
    """
    rates = [row.flop_s for row in rows if row.flop_s]
    peaks = [roof.peak_flop_s for roof in roofs]
    foot = [min(roof.values([intensities.low])[0] for roof in roofs)] if roofs else []
    if memory is not None and not roofs:
        peaks = [memory.bandwidth_bytes_s * row.arithmetic_intensity for row in rows]
    foot += [memory.bandwidth_bytes_s * intensities.low] if memory is not None else []
    return around(rates + peaks + foot, below=2.0, above=2.0)


def around(values: Iterable[float], below: float, above: float) -> Span:
    """From the lowest of the values over ``below`` to the highest times ``above``; ``EMPTY`` where there are none."""
    known = [value for value in values if value > 0 and math.isfinite(value)]
    if not known:
        return EMPTY
    return Span(min(known) / below, max(known) * above)


def seconds(span: Span) -> dict[str, Any]:
    """Ticks of a logarithmic axis of seconds in words, ``20 ms``: an SI prefix alone, ``20m``, would be read as minutes.

    At every power of ten, and at twice and five times these where the span is short; fewer where it is long.
    """
    step = max(1, math.ceil(span.decades / _MOST_DECADES))
    ways = (_of_decades(span, (1, 2, 5) if span.decades <= _SHORT_DECADES else (1,), step), _of_decades(span, (1, 2, 5)))
    values = next((values for values in ways if len(values) >= LEAST_TICKS), None) or _between(span)
    return {"tickmode": "array", "tickvals": values, "ticktext": [_time(value) for value in values], "minor": _minor(span)}


def ticks(span: Span) -> dict[str, Any]:
    """Where a logarithmic axis has its labels: at powers of ten, between them too where the span is short, never under two."""
    ways: tuple[tuple[object, tuple[int, ...]], ...] = ((1, (1,)), ("D2", (1, 2, 5)))
    for dtick, factors in ways if span.decades > _LONG_DECADES else ways[1:]:
        if len(_of_decades(span, factors)) >= LEAST_TICKS:
            return {"dtick": dtick}
    return {"tickmode": "array", "tickvals": _between(span), "minor": _minor(span)}


def _minor(span: Span) -> dict[str, Any]:
    """Small ticks beside labels at places of their own, for which Plotly would find far too many: at digits of each decade."""
    digits = range(1, 10) if span.decades <= _DIGITS_DECADES else (1,)
    return {"ticks": "outside", "ticklen": MINOR_PX, "tickmode": "array", "tickvals": _of_decades(span, digits)}


def _of_decades(span: Span, factors: Sequence[int], step: int = 1) -> list[float]:
    """These multiples of every ``step``-th power of ten, as far as they are inside."""
    first, last = math.floor(math.log10(span.low)), math.ceil(math.log10(span.high))
    values = [factor * 10.0**power for power in range(first, last + 1) if power % step == 0 for factor in factors]
    return [value for value in values if span.low <= value <= span.high]


def _between(span: Span) -> list[float]:
    """Even steps of 1, 2 or 5 times a power of ten through a span in which those numbers themselves are too few."""
    room = (span.high - span.low) / (LEAST_TICKS + 1)
    power = 10.0 ** math.floor(math.log10(room))
    step = max(factor for factor in (1, 2, 5) if factor * power <= room * 1.001) * power
    return [number * step for number in range(math.ceil(span.low / step), math.floor(span.high / step) + 1)]


def _time(time_s: float) -> str:
    unit_s, unit = next((each for each in TIMES if time_s >= each[0] * 0.9999), TIMES[-1])
    return f"{time_s / unit_s:.4g} {unit}"


def with_two_powers(span: Span) -> Span:
    """The same, or as much wider on both sides as it takes to have two powers of two."""
    while math.floor(math.log2(span.high)) - math.ceil(math.log2(span.low)) < LEAST_TICKS - 1:
        span = Span(span.low / math.sqrt(2), span.high * math.sqrt(2))
    return span


def powers_of_two(span: Span, words: Callable[[int], str]) -> dict[str, Any]:
    """Ticks at powers of two under their words, as many as lie level beside one another on every screen.

    Plotly would turn more of them, and they would cover what stands under the axis.
    """
    low, high = max(0, math.ceil(math.log2(span.low))), math.floor(math.log2(span.high))
    for step in range(1, max(2, high + 1)):
        values = [2**power for power in range(low, high + 1) if power % step == 0]
        texts = [words(value) for value in values]
        if len(texts) < 2 or len(texts) * (_CHARACTER_PX * max(map(len, texts)) + _GAP_PX) <= _LEVEL_PX:
            break
    return {"tickmode": "array", "tickvals": values, "ticktext": texts, "tickangle": 0, "minor": None}
