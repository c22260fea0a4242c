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
_SHORT_DECADES, _MOST_DECADES = 2.5, 9
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
    first, last = math.floor(math.log10(span.low)), math.ceil(math.log10(span.high))
    factors = (1, 2, 5) if span.decades <= _SHORT_DECADES else (1,)
    step = max(1, math.ceil(span.decades / _MOST_DECADES))
    values = [factor * 10.0**power for power in range(first, last + 1) if power % step == 0 for factor in factors]
    values = [value for value in values if span.low * 0.999 <= value <= span.high * 1.001]
    return {"tickmode": "array", "tickvals": values, "ticktext": [_time(value) for value in values]}


def _time(time_s: float) -> str:
    unit_s, unit = next((each for each in TIMES if time_s >= each[0] * 0.9999), TIMES[-1])
    return f"{time_s / unit_s:.4g} {unit}"


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
