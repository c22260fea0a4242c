"""A precision ladder as a figure: what each format gives in speed against what it costs in accuracy."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from suite.report.axes import around
from suite.report.figures import frame, log_axis
from suite.report.hover import hover_text
from suite.report.key import listed
from suite.report.ladder import Ladder, Rung
from suite.report.numbers import Numbered, numbers
from suite.report.palette import (
    DOT_PX,
    DOUBTFUL_OPACITY,
    FAMILIES,
    INKS,
    OTHER_REGIME_GLYPH,
    OTHER_REGIME_SYMBOL,
    REGIME_GLYPHS,
    REGIME_SYMBOLS,
    Ink,
    Theme,
    faint,
    family_of,
    format_colour,
)
from suite.report.words import doubtful, relative_error
from suite.rows import ResultRow

_ABOVE_PX = 16
_MARKER_PX, _TRIANGLE_PX = 9, 2  # and what a triangle is larger, to be as well seen
_BAR_OPACITY = 0.5
_LEAST_POINTS = 2


def drawn(ladder: Ladder) -> tuple[Rung, ...]:
    """The rungs that have a place: an error above 0, and a speed relative to the base where the ladder has one."""
    return tuple(rung for rung in ladder.rungs if rung.error and _height(ladder, rung))


def ladder_figure(ladder: Ladder, theme: Theme = "light") -> go.Figure | None:
    """Speed against quantisation error, both logarithmic; ``None`` where fewer than two formats have a place.

    Colour is the format's, as in the roofline, and shape the regime's, or that of the family where a format shares its colour;
    filled is native, hollow emulated.  The numbers are those of the ladder's table.  Lines go from the least error to the most
    over the kinds of data, and along the speed's interval.
    """
    rungs, ink = drawn(ladder), INKS[theme]
    if len(rungs) < _LEAST_POINTS:
        return None
    errors = around((error for rung in rungs for error in rung.errors.values()), below=1.8, above=1.8)
    heights = around((_height(ladder, rung) for rung in rungs), below=1.6, above=1.6)
    figure = go.Figure([_trace(ladder, group, ink) for group in _groups(rungs)])
    layout = frame(ink, _key_lines(ladder, rungs), _ABOVE_PX)
    points = [Numbered(str(rung.number), rung.error or 1.0, _height(ladder, rung)) for rung in rungs]
    title = f"Speed ({ladder.base} = 1)" if ladder.baseline is not None else "Rate (FLOP/s; integers: OP/s)"
    figure.update_layout(
        {
            **layout,
            "showlegend": False,
            "xaxis": log_axis("Relative error from rounding the data", errors, ink, tickformat="~g"),
            "yaxis": log_axis(title, heights, ink, tickformat="~g" if ladder.baseline is not None else "~s"),
            "annotations": [*layout["annotations"], *numbers(points, errors, heights, ink)],
        }
    )
    if ladder.baseline is not None:
        figure.add_hline(y=1, line={"color": ink.muted, "width": 1, "dash": "dot"}, layer="below")
    return figure


def _height(ladder: Ladder, rung: Rung) -> float:
    if ladder.baseline is None:
        return rung.row.flop_s or 0.0
    return rung.speed.times if rung.speed is not None else 0.0


def _groups(rungs: Sequence[Rung]) -> Iterator[list[Rung]]:
    """Rungs that look the same: one trace each, so that a page can switch its theme trace by trace."""
    groups: dict[tuple[str, bool], list[Rung]] = {}
    for rung in rungs:
        groups.setdefault((rung.row.format, rung.row.execution == "emulated"), []).append(rung)
    yield from groups.values()


def _trace(ladder: Ladder, rungs: Sequence[Rung], ink: Ink) -> go.Scatter:
    colour = format_colour(rungs[0].row.format, ink)
    return go.Scatter(
        x=[rung.error for rung in rungs],
        y=[_height(ladder, rung) for rung in rungs],
        error_x=_bars([_reach(rung.error or 0.0, list(rung.errors.values())) for rung in rungs], colour),
        error_y=_bars([_reach(_height(ladder, rung), _ends(rung)) for rung in rungs], colour),
        mode="markers",
        marker={
            "symbol": _symbol(rungs[0].row),
            "size": _MARKER_PX + _TRIANGLE_PX * bool(family_of(rungs[0].row.format)),
            "color": colour,
            "opacity": [DOUBTFUL_OPACITY if doubtful(rung.row) else 1.0 for rung in rungs],
            "line": {"width": DOT_PX if rungs[0].row.execution == "emulated" else 0.7, "color": ink.background},
        },
        hovertext=[_hover(rung) for rung in rungs],
        hoverinfo="text",
        customdata=[rung.row.result_id for rung in rungs],
        showlegend=False,
        meta="rungs",
    )


def _symbol(row: ResultRow) -> str:
    family = family_of(row.format)
    shape = family.symbol if family else REGIME_SYMBOLS.get((row.cache, row.load, row.dispatch), OTHER_REGIME_SYMBOL)
    return f"{shape}-open" if row.execution == "emulated" else shape


def _ends(rung: Rung) -> Sequence[float]:
    return rung.speed.interval if rung.speed is not None and rung.speed.interval is not None else ()


def _reach(at: float, ends: Sequence[float]) -> tuple[float, float]:
    """How far the ends lie below and above."""
    return at - min([at, *ends]), max([at, *ends]) - at


def _bars(reaches: Sequence[tuple[float, float]], colour: str) -> dict[str, Any]:
    down, up = zip(*reaches, strict=True)
    pale = faint(colour, _BAR_OPACITY)
    return {"type": "data", "symmetric": False, "arrayminus": down, "array": up, "width": 0, "thickness": 1, "color": pale}


def _hover(rung: Rung) -> str:
    errors = ", ".join(f"{relative_error(error)} on {kind} data" for kind, error in rung.errors.items())
    return f"{hover_text(rung.row)}<br>{escape(f'{rung.number}: quantisation error {errors}')}"


def _key_lines(ladder: Ladder, rungs: Sequence[Rung]) -> list[str]:
    """Each number's format, what shapes and lines mean, and what has no place."""
    looks = _shapes([rung.row for rung in rungs])
    if any(rung.row.execution == "emulated" for rung in rungs):
        looks += ["filled: native", "hollow: emulated"]
    if any(doubtful(rung.row) for rung in rungs):
        looks.append("faded: not resolved, not converged, not steady or contended")
    if len(ladder.distributions) > 1:
        looks.append(f"across: {', '.join(ladder.distributions)} data")
    if any(map(_ends, rungs)):
        looks.append("upright: 95 % interval")
    missing = [rung.name for rung in ladder.rungs if rung not in rungs]
    base = [f"the {ladder.base} is {ladder.base_doubt}: every ratio is in doubt"] if ladder.base_doubt else []
    without = [f"not drawn, no quantisation error: {', '.join(missing)}"] if missing else []
    return [*listed([f"{rung.number} {rung.name}" for rung in rungs]), *listed(looks), *base, *without]


def _shapes(rows: Sequence[ResultRow]) -> list[str]:
    """What shapes mean, where there is more than the regime's."""
    found = [family for family in FAMILIES if any(row.format in family.formats for row in rows)]
    others = [
        REGIME_GLYPHS.get((row.cache, row.load, row.dispatch), OTHER_REGIME_GLYPH) for row in rows if not family_of(row.format)
    ]
    if not found:
        return []
    return [*(f"{glyph} other formats" for glyph in others[:1]), *(f"{family.glyph} {family.words}" for family in found)]
