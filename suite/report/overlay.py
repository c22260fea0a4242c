"""Several devices under their roofs in one figure: colour is the device here, and formats are told by symbol and label."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import plotly.graph_objects as go

from suite.outcome import Evidence
from suite.report.axes import Span, intensity_span, rate_span
from suite.report.curves import Part, parts_of
from suite.report.figures import frame, legend_above, legend_px, log_axis, roof_labels
from suite.report.heat import USUAL, label
from suite.report.hover import hover_text, known_by
from suite.report.key import listed, set_by
from suite.report.palette import (
    DOUBTFUL_OPACITY,
    EVIDENCE_STYLES,
    INKS,
    KIND_DASHES,
    KIND_STROKES,
    OTHER_EVIDENCE_STYLE,
    OTHER_REGIME_GLYPH,
    OTHER_REGIME_SYMBOL,
    REGIME_GLYPHS,
    REGIME_SYMBOLS,
    Ink,
    Theme,
    symbol,
    themed,
)
from suite.report.roofs import KINDS, Roof, RoofSet, drawable
from suite.report.sources import sources_of
from suite.report.traces import memory_line
from suite.report.words import doubtful, si
from suite.rows import ResultRow

_SAMPLES, _MARKER_PX, _LINE_PX = 25, 8, 1.5
_RIM_PX = 1.6


class Seat(NamedTuple):
    """One device of the figure: its name and colour, its results and its roofs."""

    name: str
    colour: str
    rows: tuple[ResultRow, ...]
    roofs: RoofSet


def overlay_figure(seats: Sequence[Seat], theme: Theme = "light") -> go.Figure:
    """Every device's points and roofs; ``customdata`` of a point is what ``known_by`` says."""
    ink = INKS[theme]
    seats = [seat._replace(colour=themed(seat.colour, ink)) for seat in seats]
    points = [row for seat in seats for row in seat.rows if drawable(row)]
    roofs = [roof for seat in seats for roof in seat.roofs.lines]
    intensities = intensity_span(points, roofs)
    rates = rate_span(points, roofs, intensities)
    lines = [line for seat in seats for line in _roofs(seat, intensities)]
    symbols = _symbols(points)
    figure = go.Figure([*lines, *(trace for seat in seats for trace in _points(seat, symbols, ink))])
    names = [label(seat.name) for seat in seats]
    above_px = legend_px(names)
    layout = frame(ink, list(_key(points, roofs, seats, symbols)), above_px)
    figure.update_layout(layout, legend=legend_above(above_px, layout["height"]), uirevision="kept")
    figure.update_xaxes(log_axis("Arithmetic intensity (FLOP/byte)", intensities, ink, tickformat="~g"))
    figure.update_yaxes(log_axis("Rate (FLOP/s; integers: OP/s)", rates, ink, tickformat="~s"))
    labelled = [roof for seat in seats for roof in _labelled(seat.roofs)]
    for each in roof_labels(labelled, intensities, rates, ink):
        figure.add_annotation(each)
    return figure


def _labelled(roofs: RoofSet) -> Sequence[Roof]:
    """The roofs of one kind, the sheet's where there are any: labels of every kind would cover one another."""
    return next((found for kind in ("spec", "empirical", *KINDS) if (found := roofs.of_kind(kind))), ())


def _symbols(points: Sequence[ResultRow]) -> Mapping[str, str]:
    """A symbol for each format where there are several; else none, and symbols are those of regimes."""
    names = sorted({row.format for row in points})
    if len(names) < 2:
        return {}
    shapes = list(REGIME_SYMBOLS.values())
    return {name: shapes[place] if place < len(shapes) else OTHER_REGIME_SYMBOL for place, name in enumerate(names)}


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
        yield _roof_trace(seat, kind, x, y, texts)
    at, heights = memory_line(seat.roofs, intensities)
    if at and (memory := seat.roofs.memory_alone) is not None:
        said = f"{label(seat.name)}: empirical roof: memory {si(memory.bandwidth_bytes_s, 'B/s')}"
        yield _roof_trace(seat, "empirical", at, heights, [said] * len(at))


def _roof_trace(
    seat: Seat, kind: str, x: Sequence[float | None], y: Sequence[float | None], texts: Sequence[str]
) -> go.Scatter:
    return go.Scatter(
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


def _points(seat: Seat, symbols: Mapping[str, str], ink: Ink) -> Iterator[go.Scatter]:
    """One trace for what looks the same; the first, which may be empty, is the device's entry in the legend.

    Where ``symbols`` tell formats, a point of an unusual regime has a rim.
    """
    name = label(seat.name)
    marker: dict[str, Any] = {"size": _MARKER_PX, "color": seat.colour}
    yield go.Scatter(x=[None], y=[None], mode="markers", name=name, legendgroup=name, marker=marker, meta="key")
    parts: dict[tuple[Part, str], list[ResultRow]] = {}
    for part, rows in parts_of(filter(drawable, seat.rows)).items():
        for row in rows:
            parts.setdefault((part, row.format if symbols else ""), []).append(row)
    for (part, format), rows in sorted(parts.items()):
        measured = part.evidence == Evidence.MEASURED
        is_rimmed = bool(symbols) and part[:3] != USUAL
        shape = symbols[format] + EVIDENCE_STYLES.get(part.evidence, OTHER_EVIDENCE_STYLE) if symbols else symbol(*part)
        yield go.Scatter(
            x=[row.arithmetic_intensity for row in rows],
            y=[row.flop_s for row in rows],
            mode="markers",
            marker={
                **marker,
                "symbol": shape,
                "opacity": [DOUBTFUL_OPACITY if doubtful(row) else 1.0 for row in rows],
                "line": {
                    "width": _RIM_PX if is_rimmed and measured else 0.7 if measured else 1.8,
                    "color": ink.text if is_rimmed and measured else ink.background,
                },
            },
            hovertext=[f"{label(seat.name)}<br>{hover_text(row)}" for row in rows],
            hoverinfo="text",
            customdata=[known_by(row) for row in rows],
            legendgroup=name,
            showlegend=False,
            meta="points",
        )


def _key(
    points: Sequence[ResultRow], roofs: Sequence[Roof], seats: Sequence[Seat], symbols: Mapping[str, str]
) -> Iterator[str]:
    regimes = sorted({(row.cache, row.load, row.dispatch) for row in points})
    glyphs = dict(zip(REGIME_SYMBOLS.values(), REGIME_GLYPHS.values(), strict=True))
    if symbols:
        entries = [f"{glyphs.get(shape, OTHER_REGIME_GLYPH)} {label(name)}" for name, shape in symbols.items()]
        if any(regime != USUAL for regime in regimes):
            entries.append(f"rimmed: not {'/'.join(USUAL)}, hover says what")
    else:
        entries = [f"{REGIME_GLYPHS.get(regime, OTHER_REGIME_GLYPH)} {'/'.join(regime)}" for regime in regimes]
    entries += [f"hollow: {kind}" for kind in sorted({row.evidence for row in points} - {"measured"})]
    entries += ["faded: in doubt, hover says why"] if any(map(doubtful, points)) else []
    drawn = {roof.kind for roof in roofs} | {"empirical" for seat in seats if seat.roofs.memory_alone is not None}
    kinds = [kind for kind in KIND_DASHES if kind in drawn]
    strokes = {"spec": "solid", "empirical": "dashed", **KIND_STROKES}
    entries += [f"{strokes[kind]}: {kind} roof" for kind in kinds]
    yield from listed(entries)
    for seat in seats:
        sources = sources_of(filter(drawable, seat.rows))
        if sources.several:
            yield f"{seat.name}: {' and '.join(sources.names)}, hover says which"
        for note in set_by(seat.roofs, whole=False):
            yield f"{seat.name}: {note}"
    left_out = sum(len(seat.rows) for seat in seats) - len(points)
    if left_out:
        yield f"not drawn: {left_out} that failed or do no arithmetic"
