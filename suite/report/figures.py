"""Rows to Plotly figures, as pure functions.  No arithmetic of rooflines here: ``suite.roofline`` has all of it."""

import math
from collections.abc import Collection, Iterator, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from suite.report.axes import MINOR_PX, Span, intensity_span, rate_span, seconds, ticks
from suite.report.key import GAP, key_lines, wrapped
from suite.report.palette import INKS, Ink, Theme, faint
from suite.report.printable import shortened
from suite.report.roofs import Roof, RoofSet, drawable
from suite.report.traces import traces
from suite.rows import ResultRow

# For every place that shows a figure: Plotly's own button would upload the chart to its maker's server.
CHART_CONFIG = {
    "displaylogo": False,
    "showSendToCloud": False,
    "plotlyServerURL": "",
    "modeBarButtonsToRemove": ["lasso2d", "select2d"],
    "responsive": True,
}
PLOT_PX = 420
SECONDS = " (s)"  # at the end of the title of an axis of time
LINE_PX = 16  # of the key
KEY = "key"  # the name of its annotation, and of what the layout's ``meta`` has of it
LABEL_PX = 18  # of a label of a roof with what keeps it from the next
_LABEL_OPACITY = 0.75  # of what stands behind its words: a line is faint there, and a point is not gone
LABEL_CHARACTERS = 48  # across the plot of a telephone
LEFT_PX, RIGHT_PX = 72, 16
# The legend of formats on a screen of 390 px: columns as wide as the longest name, and rows of so many pixels.
_LEGEND_PX, _SYMBOL_PX, _CHARACTER_PX, _ROW_PX = 330, 45, 7, 19
_AXIS_PX = 52  # ticks and title of the horizontal axis


def roofline_figure(rows: Sequence[ResultRow], roofs: RoofSet, theme: Theme = "light") -> go.Figure:
    """The roofline of one device: points by format (colour) and regime (symbol), spec roofs solid, empirical dashed.

    Only verified results are points; the others are counted under the plot.  The legend entry of a format hides and
    shows the format with its empirical roofs.
    """
    ink = INKS[theme]
    points = [row for row in rows if drawable(row)]
    intensities = intensity_span(points, roofs.lines)
    rates = rate_span(points, roofs.lines, intensities, roofs.memory_alone)
    figure = go.Figure(traces(points, roofs, intensities, ink))
    above_px = legend_px({row.format for row in points})
    _name_memory(figure, roofs)
    figure.update_layout(_layout(ink, intensities, rates, key_lines(rows, roofs), above_px))
    for label in roof_labels(roofs.of_kind("spec") or roofs.of_kind("empirical"), intensities, rates, ink):
        figure.add_annotation(label)
    return figure


def _name_memory(figure: go.Figure, roofs: RoofSet) -> None:
    """Say on hover what set the memory part, which all empirical roofs share."""
    lines = (line.memory_set_by for line in roofs.of_kind("empirical") if line.memory_set_by is not None)
    found = next(lines, roofs.memory_alone.set_by if roofs.memory_alone is not None else None)
    if found is None:
        return
    for trace in figure.data:
        if trace.meta == "roof" and str(trace.hovertext).startswith("empirical roof: memory"):
            trace.hovertext = f"{trace.hovertext}, set by {escape(found.words)}"


def legend_px(names: Collection[str], width_px: int = _LEGEND_PX) -> int:
    """What the legend needs above a plot of this width, that of the narrowest screen at first."""
    longest = max(map(len, names), default=0)
    columns = max(1, width_px // (_SYMBOL_PX + _CHARACTER_PX * longest))
    return 7 + _ROW_PX * max(1, math.ceil(len(names) / columns))


def _layout(ink: Ink, intensities: Span, rates: Span, key: Sequence[str], above_px: int) -> dict[str, Any]:
    layout = frame(ink, key, above_px)
    return {
        **layout,
        "xaxis": log_axis("Arithmetic intensity (FLOP/byte)", intensities, ink, tickformat="~g"),
        "yaxis": log_axis("Rate (FLOP/s; integers: OP/s)", rates, ink, tickformat="~s"),
        "legend": legend_above(above_px, layout["height"]),
    }


def frame(ink: Ink, key: Sequence[str], above_px: int) -> dict[str, Any]:
    """The layout that figures share.  Legend and key are placed by pixels from the plot, whose height is fixed.

    ``key`` are paragraphs.  They stand in ``meta`` too, for a page that wraps them by its width.
    """
    lines = wrapped(key)
    below = _AXIS_PX + key_px(lines)
    return {
        "height": above_px + PLOT_PX + below,
        "margin": {"l": LEFT_PX, "r": RIGHT_PX, "t": above_px, "b": below},
        "paper_bgcolor": ink.background,
        "plot_bgcolor": ink.background,
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": ink.text},
        "hoverlabel": {"align": "left", "bgcolor": ink.background, "bordercolor": ink.muted, "font": {"color": ink.text}},
        "hovermode": "closest",
        "annotations": [_key(lines, ink)] if lines else [],
        "meta": {KEY: {"paragraphs": [escape(paragraph) for paragraph in key], "gap": GAP, "line_px": LINE_PX}},
    }


def key_px(lines: Sequence[str]) -> int:
    """What the lines of a key take below the axis."""
    return LINE_PX * (len(lines) + 1)


def legend_above(needed_px: int, height_px: int) -> dict[str, Any]:
    """A legend in the ``needed_px`` above the plot of a figure."""
    bottom = 1 - (needed_px - 6) / height_px
    place = {"xref": "container", "yref": "container", "x": 0, "y": bottom, "yanchor": "bottom", "orientation": "h"}
    return {**place, "tracegroupgap": 0, "groupclick": "togglegroup", "bgcolor": "rgba(0,0,0,0)", "font": {"size": 12}}


def log_axis(title: str, span: Span, ink: Ink, tickformat: str) -> dict[str, Any]:
    """A logarithmic axis over ``span``, with its title and ticks in the theme's colours; one of seconds has its units on it."""
    is_time = title.endswith(SECONDS) and tickformat == "~s"
    title = title.removesuffix(SECONDS) if is_time else title
    axis = {
        "type": "log",
        "range": span.log10,
        "title": {"text": title, "standoff": 8},
        "tickformat": tickformat,
        "gridcolor": ink.grid,
        "linecolor": ink.muted,
        "showline": True,
        "ticks": "outside",
        "zeroline": False,
        "minor": {"ticks": "outside", "ticklen": MINOR_PX},
    }
    return {**axis, **(seconds(span) if is_time else ticks(span))}


def _key(lines: Sequence[str], ink: Ink) -> dict[str, Any]:
    return {
        "name": KEY,
        "text": "<br>".join(map(escape, lines)),
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": 0,
        "xshift": 12 - LEFT_PX,
        "yshift": -_AXIS_PX,
        "xanchor": "left",
        "yanchor": "top",
        "align": "left",
        "showarrow": False,
        "font": {"size": 12, "color": ink.muted},
    }


def roof_labels(lines: Sequence[Roof], intensities: Span, rates: Span, ink: Ink) -> Iterator[dict[str, Any]]:
    """Each peak in words above its line at the right end, before the page's colour, so that no line that passes strikes it out.

    Peaks too close for two lines of text share one, by their names alone where a telephone would cut their rates off.
    """
    for cluster in _clusters(sorted(lines, key=lambda roof: roof.peak_flop_s), rates.decades * LABEL_PX / PLOT_PX):
        yield {
            "text": escape(_cluster_words(cluster)),
            "x": math.log10(intensities.high),
            "y": math.log10(cluster[-1].peak_flop_s),
            "xanchor": "right",
            "yanchor": "bottom",
            "showarrow": False,
            "font": {"size": 11, "color": ink.text},
            "bgcolor": faint(ink.background, _LABEL_OPACITY),
            "borderpad": 0,
            "yshift": 2,  # off its own line
        }


def _cluster_words(cluster: Sequence[Roof]) -> str:
    whole = ", ".join(dict.fromkeys(roof.name for roof in cluster))
    names = ", ".join(dict.fromkeys(name for roof in cluster for name in roof.pipes))
    return whole if len(whole) <= LABEL_CHARACTERS else shortened(names, LABEL_CHARACTERS)


def _clusters(roofs: Sequence[Roof], decades: float) -> Iterator[list[Roof]]:
    """Split ascending roofs wherever the gap to the cluster's first is at least ``decades``."""
    cluster: list[Roof] = []
    for roof in roofs:
        if cluster and math.log10(roof.peak_flop_s / cluster[0].peak_flop_s) >= decades:
            yield cluster
            cluster = []
        cluster.append(roof)
    if cluster:
        yield cluster
