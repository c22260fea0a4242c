"""Which lines a figure keeps where there are too many, and which heights it holds them against."""

import math
from collections.abc import Sequence

from suite.report.curves import Level, Line, Quantity
from suite.report.figures import LABEL_CHARACTERS
from suite.report.printable import LEAST_NAME, shortened


def strongest(lines: Sequence[Line], up: Quantity, most: int) -> list[Line]:
    """At most ``most`` lines, as many of each colour: those that reach highest, of times those that reach lowest."""
    by_colour: dict[str, list[Line]] = {}
    for line in lines:
        by_colour.setdefault(line.colour, []).append(line)
    share = max(1, most // max(1, len(by_colour)))
    if len(lines) <= most:
        return list(lines)
    kept = {id(line) for own in by_colour.values() for line in sorted(own, key=lambda line: _reach(line, up))[:share]}
    return [line for line in lines if id(line) in kept]


def levels_of(found: Sequence[tuple[str, str, float, str]]) -> list[Level]:
    """Heights given as (whose, what, value, dash): one line for all who share it, under their names where others do not."""
    groups: dict[tuple[str, float, str], list[str]] = {}
    for whose, what, value, dash in found:
        groups.setdefault((what, value, dash), []).append(whose)
    everybody = {whose for whose, *_ in found}
    return [
        Level(what if set(names) == everybody else _said_of(names, what), value, dash)
        for (what, value, dash), names in groups.items()
    ]


def _said_of(names: Sequence[str], what: str) -> str:
    """In as many characters as a figure shows of it: of a long name the end is left out, never of the height."""
    room = max(LEAST_NAME, LABEL_CHARACTERS - len(what) - 2)
    return f"{shortened(', '.join(names), room)}: {what}"


def _reach(line: Line, up: Quantity) -> float:
    """What sorts the strongest line first."""
    values = [value for row in line.rows if (value := up.value(row)) is not None]
    if up.is_less_better:
        return min(values, default=math.inf)
    return -max(values, default=0.0)
