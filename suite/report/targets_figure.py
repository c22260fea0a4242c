"""The matrix of programs and targets as a figure: a mark in each cell, its colour by what the program multiplies in."""

import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from suite.outcome import Outcome
from suite.report.figures import frame, key_px
from suite.report.heat import label
from suite.report.key import listed, wrapped
from suite.report.palette import INKS, SEQUENTIAL, Ink, Theme
from suite.report.printable import clipped, printable
from suite.report.words import percent, si
from suite.targets.derived import estimate_of, occupancy_of
from suite.targets.marks import CONVERTED, NATIVE, NO_PRODUCT, VECTOR, legend, mark
from suite.targets.record import Compiled
from suite.targets.variables import under

_LEVELS = {NATIVE: 1.0, NO_PRODUCT: 0.75, VECTOR: 0.4, CONVERTED: 0.2}
_CELL_PX, _CELL_WIDTH_PX, _CHARACTER_PX = 24, 46, 6.6
_DARK_BELOW = 0.55
_RIGHT_PX = 48  # the last name stands aslant, and Plotly drops one that would leave the figure
_MOST_HOVER, _HOVER_CHARACTERS = 192, 64  # of what is told in one piece, and of a line of it


def targets_figure(cells: Sequence[Compiled], targets: Sequence[str], theme: Theme = "light") -> go.Figure:
    """Programs down in the order of ``cells``, ``targets`` across; hover has the facts or the reason."""
    ink = INKS[theme]
    programs = list(dict.fromkeys(cell.program for cell in cells))
    places = [(targets.index(cell.target), programs.index(cell.program)) for cell in cells]
    levels: list[list[float | None]] = [[None] * len(targets) for _ in programs]
    for (column, row), cell in zip(places, cells, strict=True):
        levels[row][column] = _level(cell)
    figure = go.Figure([_colours(levels), _marks(cells, places, ink)])
    key = list(listed([f"{character} {meaning}" for character, meaning in legend(cells)]))
    above, below = 60, 14 + key_px(wrapped(key))
    left = 24 + round(_CHARACTER_PX * max(map(len, programs), default=0))
    layout = frame(ink, key, above)
    layout["annotations"] = [{**each, "yshift": -8, "xshift": 12 - left} for each in layout["annotations"]]
    margin = {"l": left, "r": _RIGHT_PX, "t": above, "b": below}
    size = {"height": above + _CELL_PX * len(programs) + below, "width": left + _RIGHT_PX + _CELL_WIDTH_PX * len(targets)}
    figure.update_layout({**layout, "margin": margin, **size, "showlegend": False, "autosize": False})
    figure.update_layout(xaxis=_axis(targets, angle=-45), yaxis=_axis(programs))
    # Where a page makes the figure wider, for what hovers over it, its cells stay as wide as they are here.
    ratio = _CELL_WIDTH_PX / _CELL_PX
    figure.update_xaxes(side="top", scaleanchor="y", scaleratio=ratio, constrain="domain", constraintoward="left")
    figure.update_yaxes(range=[len(programs) - 0.5, -0.5])
    return figure


def _level(cell: Compiled) -> float | None:
    return _LEVELS.get(mark(cell)[0]) if cell.outcome is Outcome.OK else None


def _colours(levels: Sequence[Sequence[float | None]]) -> go.Heatmap:
    return go.Heatmap(z=levels, zmin=0, zmax=1, colorscale=SEQUENTIAL, showscale=False, hoverinfo="skip", xgap=2, ygap=2)


def _marks(cells: Sequence[Compiled], places: Sequence[tuple[int, int]], ink: Ink) -> go.Scatter:
    return go.Scatter(
        x=[column for column, _ in places],
        y=[row for _, row in places],
        mode="markers+text",
        text=[mark(cell) for cell in cells],
        textposition="middle center",
        textfont={"size": 12, "color": [_ink(cell, ink) for cell in cells]},
        marker={"symbol": "square", "size": 20, "color": "rgba(0,0,0,0)"},
        hovertext=[_hover(cell) for cell in cells],
        hoverinfo="text",
        cliponaxis=False,
        meta="cells",
    )


def _ink(cell: Compiled, ink: Ink) -> str:
    level = _level(cell)
    if level is None:
        return ink.alert if cell.failed else ink.muted
    return "#ffffff" if level < _DARK_BELOW else "#111111"


def _hover(cell: Compiled) -> str:
    """As wide as a small figure has room for: what is longer would be cut off at its edges."""
    lines = (clipped(printable(line), _MOST_HOVER) for line in hover_lines(cell))
    return "<br>".join(escape(part) for line in lines for part in textwrap.wrap(line, _HOVER_CHARACTERS))


def hover_lines(cell: Compiled) -> Iterator[str]:
    """What a cell is, in a few lines."""
    yield f"{cell.program} for {cell.target}: {cell.outcome.value}"
    if variables := under(cell):
        yield variables
    if cell.reason:
        yield cell.reason
        return
    yield cell.configuration
    facts, held, estimate = cell.facts, occupancy_of(cell), estimate_of(cell)
    if held:
        yield f"{facts['registers']} registers, {facts['spilled_bytes']} B spilled, {facts['shared_bytes']} B shared"
        yield f"{held.warps} warps a unit, {percent(held.share)}, limited by {held.limited_by}"
    if estimate and estimate.flop_s:
        yield f"XLA's estimate {si(estimate.flop_s, 'FLOP/s')}, {percent(estimate.of_roof)} of the sheet's roof"
    yield ", ".join(facts.get("instructions", ())) or "no matrix instructions"
    if facts.get("instead"):
        yield str(facts["instead"])


def _axis(names: Sequence[str], angle: int = 0) -> dict[str, Any]:
    return {
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": [label(name) for name in names],
        "tickangle": angle,
        "range": [-0.5, len(names) - 0.5],
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
    }
