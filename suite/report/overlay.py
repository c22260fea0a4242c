"""Several devices under their roofs in one figure: colour is the device here, and formats are told by hover and roofs."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, NamedTuple

import plotly.graph_objects as go

from suite.report.axes import Span, intensity_span, rate_span
from suite.report.curves import parts_of
from suite.report.figures import frame, legend_above, legend_px, log_axis
from suite.report.heat import label
from suite.report.hover import hover_text, known_by
from suite.report.key import filled
from suite.report.palette import INKS, KIND_DASHES, KIND_STROKES, REGIME_GLYPHS, Ink, Theme, symbol
from suite.report.roofs import Roof, RoofSet, drawable
from suite.report.words import doubtful
from suite.rows import ResultRow

_SAMPLES, _MARKER_PX, _LINE_PX, _DOUBTFUL_OPACITY = 25, 8, 1.5, 0.4


class Seat(NamedTuple):
    """One device of the figure: its name and colour, its results and its roofs."""

    name: str
    colour: str
    rows: tuple[ResultRow, ...]
    roofs: RoofSet


def overlay_figure(seats: Sequence[Seat], theme: Theme = "light") -> go.Figure:
    """Every device's points and roofs; ``customdata`` of a point is what ``known_by`` says."""
    ink = INKS[theme]
    points = [row for seat in seats for row in seat.rows if drawable(row)]
    roofs = [roof for seat in seats for roof in seat.roofs.lines]
    intensities = intensity_span(points, roofs)
    rates = rate_span(points, roofs, intensities)
    lines = [line for seat in seats for line in _roofs(seat, intensities)]
    figure = go.Figure([*lines, *(trace for seat in seats for trace in _points(seat, ink))])
    names = [label(seat.name) for seat in seats]
    above_px = legend_px(names)
    layout = frame(ink, list(_key(points, roofs, seats)), above_px)
    figure.update_layout(layout, legend=legend_above(above_px, layout["height"]), uirevision="kept")
    figure.update_xaxes(log_axis("Arithmetic intensity (FLOP/byte)", intensities, ink, tickformat="~g"))
    figure.update_yaxes(log_axis("Rate (FLOP/s; integers: OP/s)", rates, ink, tickformat="~s"))
    return figure


def _roofs(seat: Seat, intensities: Span) -> Iterator[go.Scatter]:
    """One trace a kind, with a hole between two roofs: a device has one for each of its pipes."""
    for kind in dict.fromkeys(roof.kind for roof in seat.roofs.lines):
        x: list[float | None] = []
        y: list[float | None] = []
        texts: list[str] = []
        for roof in seat.roofs.of_kind(kind):
            places = _places(roof, intensities)
            load = f", {roof.load}" if roof.load else ""
            x += [*places, None]
            y += [*roof.values(places), None]
            texts += [f"{label(seat.name)}: {kind} roof{load}: {escape(roof.label)}"] * (len(places) + 1)
        yield go.Scatter(
            x=x,
            y=y,
            mode="lines",
            line={"color": seat.colour, "width": _LINE_PX, "dash": KIND_DASHES.get(kind, "dash")},
            opacity=0.75,
            hovertext=texts,
            hoverinfo="text",
            legendgroup=label(seat.name),
            showlegend=False,
            meta="roof",
        )


def _places(roof: Roof, intensities: Span) -> list[float]:
    """With the ridge itself, where the line has its corner."""
    ridge = [roof.ridge] if roof.ridge and intensities.low < roof.ridge < intensities.high else []
    return sorted([*intensities.samples(_SAMPLES), *ridge])


def _points(seat: Seat, ink: Ink) -> Iterator[go.Scatter]:
    """One trace for what looks the same; the first, which may be empty, is the device's entry in the legend."""
    name = label(seat.name)
    marker: dict[str, Any] = {"size": _MARKER_PX, "color": seat.colour}
    yield go.Scatter(x=[None], y=[None], mode="markers", name=name, legendgroup=name, marker=marker, meta="key")
    for part, rows in sorted(parts_of(filter(drawable, seat.rows)).items()):
        yield go.Scatter(
            x=[row.arithmetic_intensity for row in rows],
            y=[row.flop_s for row in rows],
            mode="markers",
            marker={
                **marker,
                "symbol": symbol(*part),
                "opacity": [_DOUBTFUL_OPACITY if doubtful(row) else 1.0 for row in rows],
                "line": {"width": 0.7 if part.evidence == "measured" else 1.8, "color": ink.background},
            },
            hovertext=[f"{label(seat.name)}<br>{hover_text(row)}" for row in rows],
            hoverinfo="text",
            customdata=[known_by(row) for row in rows],
            legendgroup=name,
            showlegend=False,
            meta="points",
        )


def _key(points: Sequence[ResultRow], roofs: Sequence[Roof], seats: Sequence[Seat]) -> Iterator[str]:
    regimes = sorted({(row.cache, row.load, row.dispatch) for row in points})
    entries = [f"{REGIME_GLYPHS.get(regime, '⬢')} {'/'.join(regime)}" for regime in regimes]
    entries += [f"hollow: {kind}" for kind in sorted({row.evidence for row in points} - {"measured"})]
    entries += ["faded: in doubt, hover says why"] if any(map(doubtful, points)) else []
    kinds = [kind for kind in KIND_DASHES if any(roof.kind == kind for roof in roofs)]
    strokes = {"spec": "solid", "empirical": "dashed", **KIND_STROKES}
    entries += [f"{strokes[kind]}: {kind} roof" for kind in kinds]
    yield from filled(entries)
    left_out = sum(len(seat.rows) for seat in seats) - len(points)
    if left_out:
        yield f"not drawn: {left_out} that failed or do no arithmetic"
