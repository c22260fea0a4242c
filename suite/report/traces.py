"""The traces of the roofline: roofs as lines, results as points, and legend entries that stand for neither."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape
from itertools import chain
from typing import Any, NamedTuple

import plotly.graph_objects as go

from suite.outcome import Evidence
from suite.report.axes import Span
from suite.report.hover import hover_text
from suite.report.palette import (
    DOT_PX,
    DOTTED,
    DOUBTFUL_OPACITY,
    KIND_DASHES,
    LOAD_DASHES,
    RIM_PX,
    RIMS,
    Ink,
    dotted,
    format_colour,
    symbol,
)
from suite.report.roofs import Roof, RoofSet
from suite.report.sources import sources_of
from suite.report.words import doubtful, si
from suite.roofline import roof as attainable
from suite.rows import ResultRow

_SAMPLES = 25  # along each line, so that a hover finds it anywhere
_MARKER_PX = 9
_DOTTED_PX = 2  # more, of which the line that draws the dot takes as much at the edge
_LINE_PX = 1.6


class Group(NamedTuple):
    """Points that look the same: one trace."""

    format: str
    cache: str
    load: str
    dispatch: str
    evidence: str
    source: str

    @property
    def shape(self) -> str:
        """The regime's, as what was measured in a format with a colour of its own has it."""
        return symbol(self.cache, self.load, self.dispatch, Evidence.MEASURED)

    @property
    def symbol(self) -> str:
        """With the format's dot where it was measured: what was not has signs of its own there."""
        found = symbol(self.cache, self.load, self.dispatch, self.evidence)
        return dotted(found, self.format) if self.evidence == Evidence.MEASURED else found


def traces(points: Sequence[ResultRow], roofs: RoofSet, intensities: Span, ink: Ink) -> list[go.Scatter]:
    """Everything drawn, roofs first so that points lie on top.  ``meta`` says what a trace is: ``roof``, ``ridge``,
    ``points`` or ``key``; each trace has one colour, so that a page can switch its theme trace by trace."""
    return list(
        chain(
            _spec_traces(roofs.of_kind("spec"), intensities, ink),
            _clocked_traces([*roofs.of_kind("boost"), *roofs.of_kind("at clock")], intensities, ink),
            _empirical_traces(roofs.of_kind("empirical"), intensities, ink),
            _memory_traces(roofs, intensities, ink),
            _point_traces(points, ink),
            _formats(points, ink),
        )
    )


def _spec_traces(roofs: Sequence[Roof], intensities: Span, ink: Ink) -> Iterator[go.Scatter]:
    style = {"color": ink.text, "width": _LINE_PX}
    for sheet in dict.fromkeys(roof.sheet for roof in roofs):
        own = [roof for roof in roofs if roof.sheet == sheet]
        if slope := _slope(own, intensities, style, f"spec roof by {sheet}" if sheet else "spec roof"):
            yield slope
    for roof in roofs:
        yield from _flat(roof, intensities, style, "spec roof", None)


def _empirical_traces(roofs: Sequence[Roof], intensities: Span, ink: Ink) -> Iterator[go.Scatter]:
    """Flat parts in the format's colour; the memory part is the device's and stays neutral."""
    if slope := _slope(roofs, intensities, {"color": ink.muted, "width": _LINE_PX, "dash": "dash"}, "empirical roof"):
        yield slope
    for roof in roofs:
        name = roof.format or roof.pipes[0]
        style = {"color": format_colour(name, ink), "width": _LINE_PX, "dash": LOAD_DASHES.get(roof.load or "", "dash")}
        yield from _flat(roof, intensities, style, f"empirical roof, {roof.load}", roof.format)


def _memory_traces(roofs: RoofSet, intensities: Span, ink: Ink) -> Iterator[go.Scatter]:
    """The empirical memory roof without any of arithmetic: up to the highest roof that there is, else through the figure."""
    x, y = memory_line(roofs, intensities)
    if x and roofs.memory_alone is not None:
        text = f"empirical roof: memory {si(roofs.memory_alone.bandwidth_bytes_s, 'B/s')}"
        yield _line(x, y, text, {"color": ink.muted, "width": _LINE_PX, "dash": "dash"}, None)


def memory_line(roofs: RoofSet, intensities: Span) -> tuple[list[float], list[float]]:
    """Places and heights of an empirical memory roof that stands alone; empty where there is none to be seen."""
    memory = roofs.memory_alone
    if memory is None:
        return [], []
    peak = max((roof.peak_flop_s for roof in roofs.lines), default=math.inf)
    high = min(intensities.high, peak / memory.bandwidth_bytes_s)
    x = Span(intensities.low, high).samples(_SAMPLES) if high > intensities.low else []
    return x, attainable(math.inf, memory.bandwidth_bytes_s, x)


def _clocked_traces(roofs: Sequence[Roof], intensities: Span, ink: Ink) -> Iterator[go.Scatter]:
    """Whole lines: their memory part is the sheet's, which is no other at another clock of the units."""
    for roof in roofs:
        name = roof.format or roof.pipes[0]
        style = {"color": format_colour(name, ink), "width": _LINE_PX, "dash": KIND_DASHES[roof.kind]}
        load = f", {roof.load}" if roof.load else ""
        yield from _flat(roof, intensities, style, f"{roof.kind} roof{load}", roof.format)


def _slope(roofs: Sequence[Roof], intensities: Span, style: dict[str, Any], kind: str) -> go.Scatter | None:
    """The memory part that all roofs of one kind share, up to the highest ridge."""
    highest = max((roof for roof in roofs if roof.ridge), key=lambda roof: roof.peak_flop_s, default=None)
    if highest is None or highest.ridge is None:
        return None
    x = Span(intensities.low, highest.ridge).samples(_SAMPLES)
    text = f"{kind}: memory {si(highest.bandwidth_bytes_s, 'B/s')}"
    return _line(x, highest.values(x), text, style, None)


def _flat(roof: Roof, intensities: Span, style: dict[str, Any], kind: str, group: str | None) -> Iterator[go.Scatter]:
    """The compute part from the ridge on, and the ridge point itself."""
    x = Span(roof.ridge or intensities.low, intensities.high).samples(_SAMPLES)
    yield _line(x, roof.values(x), f"{kind}: {roof.label}", style, group)
    if roof.ridge is not None:
        yield _ridge(roof, roof.ridge, f"{kind}: {', '.join(roof.pipes)}", style["color"], group)


def _line(x: list[float], y: list[float], text: str, style: dict[str, Any], group: str | None) -> go.Scatter:
    return go.Scatter(
        x=x,
        y=y,
        mode="lines",
        line=style,
        hovertext=escape(text),
        hoverinfo="text",
        legendgroup=group,
        showlegend=False,
        meta="roof",
    )


def _ridge(roof: Roof, ridge: float, name: str, colour: str, group: str | None) -> go.Scatter:
    return go.Scatter(
        x=[ridge],
        y=roof.values([ridge]),
        mode="markers",
        marker={"symbol": "line-ns", "size": 9, "color": colour, "line": {"width": _LINE_PX, "color": colour}},
        hovertext=escape(f"{name} ridge point {ridge:.4g} FLOP/B"),
        hoverinfo="text",
        legendgroup=group,
        showlegend=False,
        meta="ridge",
    )


def _point_traces(points: Sequence[ResultRow], ink: Ink) -> Iterator[go.Scatter]:
    groups: defaultdict[Group, list[ResultRow]] = defaultdict(list)
    sources = sources_of(points)
    for row in points:
        groups[Group(row.format, row.cache, row.load, row.dispatch, row.evidence, sources.of(row))].append(row)
    for group in sorted(groups):
        place = min(sources.names.index(group.source), len(RIMS) - 1)
        yield _points(group, groups[group], RIMS[place], ink)


def _points(group: Group, rows: Sequence[ResultRow], rim: str, ink: Ink) -> go.Scatter:
    return go.Scatter(
        x=[row.arithmetic_intensity for row in rows],
        y=[row.flop_s for row in rows],
        mode="markers",
        marker={
            "symbol": group.symbol,
            "size": _MARKER_PX + _DOTTED_PX * (group.format in DOTTED),
            "color": format_colour(group.format, ink),
            "opacity": [DOUBTFUL_OPACITY if doubtful(row) else 1.0 for row in rows],
            "line": {
                "width": RIM_PX if rim else 0.7 if group.symbol == group.shape else DOT_PX,
                "color": getattr(ink, rim) if rim else ink.background,
            },
        },
        hovertext=[hover_text(row) for row in rows],
        hoverinfo="text",
        customdata=[row.result_id for row in rows],
        legendgroup=group.format,
        showlegend=False,
        meta="points",
    )


def _formats(points: Sequence[ResultRow], ink: Ink) -> Iterator[go.Scatter]:
    """Legend entries alone: one a format, which its points and roofs belong to."""
    for name in sorted({row.format for row in points}):
        line = {"width": DOT_PX if name in DOTTED else 0, "color": ink.background}
        size = _MARKER_PX + _DOTTED_PX * (name in DOTTED)
        marker = {"size": size, "symbol": dotted("circle", name), "color": format_colour(name, ink), "line": line}
        yield go.Scatter(x=[None], y=[None], mode="markers", name=escape(name), marker=marker, legendgroup=name, meta="key")
