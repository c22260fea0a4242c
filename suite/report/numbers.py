"""Numbers beside the points of a figure, by which the table under it calls them."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from suite.report.axes import Span
from suite.report.figures import PLOT_PX
from suite.report.labels import Place, offsets
from suite.report.palette import Ink


class Numbered(NamedTuple):
    """A point on two logarithmic axes, and its number."""

    text: str
    x: float
    y: float


def numbers(points: Sequence[Numbered], across: Span, up: Span, ink: Ink) -> Iterator[dict[str, Any]]:
    """An annotation for each, with a line to its point."""
    places = [Place(_share(point.x, across), 1 - _share(point.y, up)) for point in points]
    for point, offset in zip(points, offsets([point.text for point in points], places, PLOT_PX), strict=True):
        yield {
            "text": point.text,
            "x": math.log10(point.x),
            "y": math.log10(point.y),
            "ax": offset.x,
            "ay": offset.y,
            "showarrow": True,
            "arrowhead": 0,
            "arrowwidth": 0.8,
            "arrowcolor": ink.muted,
            "standoff": 5,
            "borderpad": 0,
            "font": {"size": 11},
        }


def _share(value: float, span: Span) -> float:
    return math.log10(value / span.low) / span.decades
