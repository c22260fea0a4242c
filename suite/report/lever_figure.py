"""A lever of batch size as a figure: a line for each format and implementation, climbing the roofline."""

import math
from collections.abc import Iterator, Sequence
from html import escape

import plotly.graph_objects as go

from suite.outcome import Bound
from suite.report.axes import intensity_span, rate_span
from suite.report.figures import frame, log_axis
from suite.report.hover import hover_text
from suite.report.key import listed
from suite.report.lever import Crossing, Lever, Line
from suite.report.numbers import Numbered, numbers
from suite.report.palette import DOT_PX, DOTTED, DOUBTFUL_OPACITY, INKS, Ink, Theme, dotted, format_colour
from suite.report.roofs import Roof, RoofSet
from suite.report.traces import traces
from suite.report.words import doubtful

# By what limits a result; any other has the last.
SYMBOLS = {
    Bound.MEMORY.value: "circle",
    Bound.COMPUTE.value: "square",
    Bound.LAUNCH.value: "triangle-up",
    Bound.CACHE.value: "diamond",
}
GLYPHS = dict(zip(SYMBOLS, "●■▲◆", strict=True))
OTHER_SYMBOL, OTHER_GLYPH = "x", "✖"
DASHES = ("solid", "dash", "dot", "dashdot")  # of implementations, in the order in which they come
_ABOVE_PX = 16
_MARKER_PX, _CROSSING_PX, _LINE_PX = 8, 22, 1.6


def lever_figure(lever: Lever, roofs: RoofSet, theme: Theme = "light") -> go.Figure:
    """Rate against intensity, both logarithmic, under the roofs of the units that multiplied.

    Colour is the format's and dash the implementation's; a point's shape is what bounds it.  A tick across a line is where it
    passes from memory to arithmetic: halfway between the results on both sides, on the logarithmic scale.
    """
    ink, rows = INKS[theme], [point.row for line in lever.lines for point in line.points]
    lines = _above(lever, roofs)
    own = RoofSet(lines, (), None if any(line.bandwidth_bytes_s for line in lines) else roofs.memory)
    intensities = intensity_span(rows, own.lines)
    rates = rate_span(rows, own.lines, intensities, own.memory_alone)
    dashes = _dashes(lever)
    drawn = [trace for line in lever.lines for trace in _line(line, dashes[line.first.implementation], ink)]
    figure = go.Figure([*traces([], own, intensities, ink), *drawn])
    layout = frame(ink, _key_lines(lever, own), _ABOVE_PX)
    figure.update_layout(
        {
            **layout,
            "showlegend": False,
            "xaxis": log_axis("Arithmetic intensity (FLOP/byte)", intensities, ink, tickformat="~g"),
            "yaxis": log_axis("Rate (FLOP/s; integers: OP/s)", rates, ink, tickformat="~s"),
            "annotations": [*layout["annotations"], *numbers([_last(line) for line in lever.lines], intensities, rates, ink)],
        }
    )
    return figure


def _above(lever: Lever, roofs: RoofSet) -> tuple[Roof, ...]:
    """Roofs of the units that multiplied: the sheet's, or where there is none those that were measured."""
    pipes = {point.row.pipe for line in lever.lines for point in line.points}
    found = [roof for roof in roofs.lines if pipes & set(roof.pipes)]
    spec = tuple(roof for roof in found if roof.kind == "spec")
    return spec or tuple(roof for roof in found if roof.kind == "empirical")


def _dashes(lever: Lever) -> dict[str, str]:
    names = dict.fromkeys(line.first.implementation for line in lever.lines)
    return {name: DASHES[place % len(DASHES)] for place, name in enumerate(names)}


def _line(line: Line, dash: str, ink: Ink) -> Iterator[go.Scatter]:
    colour = format_colour(line.first.format, ink)
    rows = [point.row for point in line.points]
    yield go.Scatter(
        x=[row.arithmetic_intensity for row in rows],
        y=[row.flop_s for row in rows],
        mode="lines+markers",
        line={"color": colour, "width": _LINE_PX, "dash": dash},
        marker={
            "symbol": [dotted(SYMBOLS.get(row.bound or "", OTHER_SYMBOL), row.format) for row in rows],
            "size": _MARKER_PX,
            "color": colour,
            "opacity": [DOUBTFUL_OPACITY if doubtful(row) else 1.0 for row in rows],
            **({"line": {"width": DOT_PX, "color": ink.background}} if line.first.format in DOTTED else {}),
        },
        hovertext=[
            f"{hover_text(point.row)}<br>{escape(f'{line.number}: {line.name}, M = {point.m}')}" for point in line.points
        ],
        hoverinfo="text",
        customdata=[row.result_id for row in rows],
        showlegend=False,
        meta="line",
    )
    if line.crossing is not None:
        yield _tick(line, line.crossing, colour)


def _tick(line: Line, crossing: Crossing, colour: str) -> go.Scatter:
    ends = [crossing.before.row, crossing.after.row]
    return go.Scatter(
        x=[_halfway([row.arithmetic_intensity for row in ends])],
        y=[_halfway([row.flop_s or 1.0 for row in ends])],
        mode="markers",
        marker={"symbol": "line-ns", "size": _CROSSING_PX, "color": colour, "line": {"width": _LINE_PX, "color": colour}},
        hovertext=escape(f"{line.number}: {line.name}: {line.told}"),
        hoverinfo="text",
        showlegend=False,
        meta="crossing",
    )


def _halfway(values: Sequence[float]) -> float:
    low, high = values
    return math.sqrt(low * high)


def _last(line: Line) -> Numbered:
    """Where a line's number stands."""
    row = line.points[-1].row
    return Numbered(str(line.number), row.arithmetic_intensity, row.flop_s or 1.0)


def _key_lines(lever: Lever, roofs: RoofSet) -> list[str]:
    """Each number's line, what shapes and dashes mean, and the roof."""
    rows = [point.row for line in lever.lines for point in line.points]
    bounds = dict.fromkeys(row.bound or Bound.UNKNOWN.value for row in rows)
    known = [bound for bound in SYMBOLS if bound in bounds]
    shapes = [f"{GLYPHS[bound]} {bound} bound" for bound in known]
    shapes += [f"{OTHER_GLYPH} {bound} bound" for bound in bounds if bound not in SYMBOLS]
    looks = [f"{dash}: {name}" for name, dash in _dashes(lever).items()] if len(_dashes(lever)) > 1 else []
    sources = sorted({line.crossing.source for line in lever.lines if line.crossing is not None})
    if sources:
        looks.append(f"tick: from {' or '.join(sources)} to compute bound")
    if any(map(doubtful, rows)):
        looks.append("faded: not resolved, not converged, not steady or contended")
    drawn = [roofs.lines[0].kind] if roofs.lines else []
    drawn += ["empirical memory"] if roofs.memory_alone is not None else []
    looks += [f"without points: {' and '.join(drawn)} roof"] if drawn else []
    return [*listed([f"{line.number} {line.name}" for line in lever.lines]), *listed(shapes), *listed(looks)]
