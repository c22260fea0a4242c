"""Where short labels stand beside points, so that neither covers another on any screen."""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

WIDTHS_PX = (300, 560, 1130)  # of plots on a telephone, on half a screen and on a whole one: pixels of offsets are the same
_RADII_PX = (13, 19, 26, 34, 43, 54)
_TURNS = (0.125, 0.875, 0.375, 0.625, 0.0, 0.5, 0.25, 0.75)  # of a circle, from the right upwards; aslant lies on no error bar
_CHARACTER_PX, _HEIGHT_PX, _MARKER_PX = 7, 12, 9


class Place(NamedTuple):
    """A point's place on a plot of 0 to 1 from the left and from the top."""

    x: float
    y: float


class Offset(NamedTuple):
    """Pixels from a point to the middle of its label, to the right and down."""

    x: float
    y: float


class _Box(NamedTuple):
    x: float
    y: float
    width: float
    height: float

    def meets(self, other: "_Box") -> bool:
        apart_x, apart_y = abs(self.x - other.x), abs(self.y - other.y)
        return apart_x < (self.width + other.width) / 2 and apart_y < (self.height + other.height) / 2


def offsets(labels: Sequence[str], places: Sequence[Place], height_px: float) -> list[Offset]:
    """For each label the nearest place that is free, or the one that meets the fewest others."""
    taken: list[list[_Box]] = [
        [_Box(*_px(place, width, height_px), _MARKER_PX, _MARKER_PX) for place in places] for width in WIDTHS_PX
    ]
    found = []
    for label, place in zip(labels, places, strict=True):
        size = (_CHARACTER_PX * len(label), _HEIGHT_PX)

        def boxes(offset: Offset, place: Place = place, size: tuple[int, int] = size) -> Iterator[_Box]:
            for width in WIDTHS_PX:
                x, y = _px(place, width, height_px)
                yield _Box(x + offset.x, y + offset.y, *size)

        best = min(_offsets(), key=lambda offset: sum(map(_met, boxes(offset), taken)))
        for each, of_width in zip(boxes(best), taken, strict=True):
            of_width.append(each)
        found.append(best)
    return found


def _met(box: _Box, others: Sequence[_Box]) -> int:
    return sum(box.meets(other) for other in others)


def _px(place: Place, width: float, height: float) -> tuple[float, float]:
    return place.x * width, place.y * height


def _offsets() -> Iterator[Offset]:
    """Nearest first; of equally near ones the upper right comes first."""
    for radius, turn in product(_RADII_PX, _TURNS):
        yield Offset(radius * math.cos(turn * math.tau), -radius * math.sin(turn * math.tau))
