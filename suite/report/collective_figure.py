"""The curves of a run's collectives: busbw and latency against message size, and the largest message against the world's size.

What was measured is points with their intervals, joined by a line; what is modelled is a dashed line without points.
"""

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from suite.collectives.bandwidth import busbw_bytes_s
from suite.collectives.model.alpha_beta import Fit
from suite.collectives.series import Point
from suite.collectives.study import Crossover, Modelled, Study
from suite.report.axes import Span, around, powers_of_two, with_two_powers
from suite.report.collective_words import MODELLED, interval, modelled_label, point_doubts, setting_title
from suite.report.figures import PLOT_PX, frame, legend_above, legend_px, log_axis
from suite.report.key import listed
from suite.report.palette import (
    DOUBTFUL_OPACITY,
    EVIDENCE_STYLES,
    FORMAT_COLOURS,
    INKS,
    OTHER_EVIDENCE_STYLE,
    Ink,
    Theme,
    faint,
)
from suite.report.words import duration, message_size, si

COLOURS = tuple(FORMAT_COLOURS[name] for name in ("bf16", "fp8_e4m3", "fp32", "fp16", "fp8_e5m2", "int8", "tf32", "fp64"))
SAMPLES = 48  # sizes at which a model is drawn
_UPPER, _LOWER = [0.54, 1.0], [0.0, 0.46]  # shares of the plot's height: busbw above latency
_GROWN = 1.5  # two plots in one frame
_BAND_OPACITY = 0.15
FADED = "faded: not resolved, not converged, not steady, contended or of ranks that share cores"
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down")


def curves_figure(study: Study, ranks: int, theme: Theme = "light") -> go.Figure | None:
    """Both curves of one world, over one logarithmic axis of sizes; ``None`` where it has no point."""
    ink, shown = INKS[theme], [(index, each) for index, each in enumerate(study.models) if each.curve.of(ranks)]
    if not shown:
        return None
    points = [point for _, model in shown for point in model.curve.of(ranks)]
    sizes = with_two_powers(around((point.message_bytes for point in points), below=1.5, above=1.5))
    drawn = [trace for index, model in shown for trace in _traces(model, index, ranks, sizes)]
    figure = go.Figure(drawn)
    rates, times = _spans(study, points)
    figure.update_layout(_layout(ink, drawn))
    figure.update_layout(
        xaxis={
            **log_axis("Message (bytes)", sizes, ink, tickformat="~s"),
            **powers_of_two(sizes, message_size),
            "anchor": "y2",
        },
        yaxis={**log_axis("busbw (B/s)", rates, ink, tickformat="~s"), "domain": _UPPER},
        yaxis2={**log_axis("Time (s)", times, ink, tickformat="~s"), "domain": _LOWER},
    )
    for found in study.crossovers:
        if found.ranks == ranks:
            _mark(figure, found, ink)
    return figure


def worlds_figure(study: Study, theme: Theme = "light") -> go.Figure | None:
    """The time of the largest message against ranks, on to worlds that nobody measured; ``None`` where nothing is fitted."""
    ink, at = INKS[theme], study.largest_bytes
    traces = [trace for index, model in enumerate(study.models) for trace in _world_traces(model, index, at)]
    if not any(trace.meta == MODELLED for trace in traces):
        return None
    figure = go.Figure(traces)
    figure.update_layout(_layout(ink, traces, grown=1.0))
    ranks = around((x for trace in traces for x in trace.x), below=1.3, above=1.3)
    times = around((y for trace in traces for y in trace.y), below=1.5, above=1.5)
    title = f"Time of {message_size(at)} (s)"
    figure.update_layout(
        xaxis=log_axis("Ranks", ranks, ink, tickformat=",d"), yaxis=log_axis(title, times, ink, tickformat="~s")
    )
    return figure


def _traces(model: Modelled, index: int, ranks: int, sizes: Span) -> Iterator[go.Scatter]:
    points, op = model.curve.of(ranks), model.curve.setting.op
    busbw = [point.busbw_bytes_s(op) for point in points]
    yield _measured(model, index, points, busbw, [_ends(point, point.busbw_bytes_s(op)) for point in points], "y")
    times = [point.time_s for point in points]
    yield _measured(model, index, points, times, [(point.low_s, point.high_s) for point in points], "y2")
    if isinstance(model.fit, Fit):
        known = Span(max(sizes.low, model.fit.from_bytes), sizes.high)
        at = [round(each) for each in known.samples(SAMPLES)]
        predicted = [model.fit.time_s(ranks, each) for each in at]
        rates = [busbw_bytes_s(op, ranks, each, time_s) for each, time_s in zip(at, predicted, strict=True)]
        yield _modelled(model, index, at, rates, "y")
        yield _modelled(model, index, at, predicted, "y2")


def _ends(point: Point, busbw: float) -> tuple[float, float]:
    """A rate's interval is that of the time, turned over."""
    return busbw * point.time_s / point.high_s, busbw * point.time_s / point.low_s if point.low_s else math.inf


def _measured(
    model: Modelled,
    index: int,
    points: Sequence[Point],
    values: Sequence[float],
    ends: Sequence[tuple[float, float]],
    axis: str,
) -> go.Scatter:
    colour, way = COLOURS[index % len(COLOURS)], model.curve.way
    style = EVIDENCE_STYLES.get(model.curve.setting.evidence, OTHER_EVIDENCE_STYLE)
    known = [
        (low, high) if math.isfinite(high) and low > 0 else (value, value)
        for (low, high), value in zip(ends, values, strict=True)
    ]
    return go.Scatter(
        x=[point.message_bytes for point in points],
        y=values,
        error_y={
            "type": "data",
            "symmetric": False,
            "arrayminus": [max(0.0, value - low) for value, (low, _) in zip(values, known, strict=True)],
            "array": [max(0.0, high - value) for value, (_, high) in zip(values, known, strict=True)],
            "width": 0,
            "thickness": 1,
            "color": colour,
        },
        yaxis=axis,
        mode="lines+markers",
        name=escape(way.label),
        legendgroup=escape(way.label),
        showlegend=axis == "y",
        line={"color": colour, "width": 1.2},
        marker={
            "color": colour,
            "size": 7,
            "symbol": _SYMBOLS[index % len(_SYMBOLS)] + style,
            "opacity": [DOUBTFUL_OPACITY if point.doubts else 1.0 for point in points],
        },
        hovertext=[_hover(model, point) for point in points],
        hoverinfo="text",
        customdata=[point.result_id for point in points],
        meta=model.curve.setting.evidence,
    )


def _modelled(model: Modelled, index: int, at: Sequence[int], values: Sequence[float], axis: str) -> go.Scatter:
    label = escape(modelled_label(model.curve.way))
    return go.Scatter(
        x=at,
        y=values,
        yaxis=axis,
        mode="lines",
        name=label,
        legendgroup=label,
        showlegend=axis == "y",
        line={"color": COLOURS[index % len(COLOURS)], "width": 2, "dash": "dash"},
        hoverinfo="name+x+y",
        meta=MODELLED,
    )


def _world_traces(model: Modelled, index: int, at: int) -> Iterator[go.Scatter]:
    """Points of the worlds that have this size, the model through them and on, and the band of what lies beyond."""
    points = [point for point in model.curve.points if point.message_bytes == at]
    if points:
        ends = [(point.low_s, point.high_s) for point in points]
        trace = _measured(model, index, points, [point.time_s for point in points], ends, "y")
        yield trace.update(x=[point.ranks for point in points])
    if not isinstance(model.fit, Fit):
        return
    beyond = model.beyond(at)
    worlds = sorted({*model.curve.worlds, *(each.ranks for each in beyond)})  # one whose points do not count is predicted
    yield _modelled(model, index, worlds, [model.fit.time_s(ranks, at) for ranks in worlds], "y")
    x = [each.ranks for each in beyond]
    colour = COLOURS[index % len(COLOURS)]
    group = escape(modelled_label(model.curve.way))
    same: dict[str, Any] = {"x": x, "mode": "lines", "line": {"width": 0}, "showlegend": False, "legendgroup": group}
    yield go.Scatter(**same, y=[each.high_s for each in beyond], hoverinfo="skip", meta="band")
    yield go.Scatter(
        **same,
        y=[each.low_s for each in beyond],
        fill="tonexty",
        fillcolor=faint(colour, _BAND_OPACITY),
        hoverinfo="skip",
        meta="band",
    )


def _hover(model: Modelled, point: Point) -> str:
    setting, rate = model.curve.setting, si(point.busbw_bytes_s(model.curve.setting.op), "B/s")
    lines = (
        f"{setting_title(setting)}, {model.curve.way.label}",
        f"{message_size(point.message_bytes)}, {point.ranks} ranks: {duration(point.time_s)}, {rate} busbw",
        f"95 %: {interval(point)}",
        *([point_doubts(point)] if point.doubts else []),
    )
    return "<br>".join(map(escape, lines))


def _mark(figure: go.Figure, found: Crossover, ink: Ink) -> None:
    """Where ring and tree cross: measured dash-dotted, predicted dotted, each with its word."""
    for each in found.measured:
        figure.add_shape(_upright(each.at_bytes, ink.text, "dashdot"))
        figure.add_annotation(_note(each.at_bytes, f"{each.faster_above} faster", 1.0, ink))
    if found.predicted is not None and found.predicted.is_resolved:
        low, high = (10**end for end in figure.layout.xaxis.range)
        if low < found.predicted.at_bytes < high:
            figure.add_shape(_upright(found.predicted.at_bytes, ink.muted, "dot"))
            note = f"{found.predicted.faster_above} faster, {MODELLED}"
            figure.add_annotation(_note(found.predicted.at_bytes, note, 0.5, ink))


def _upright(at: float, colour: str, dash: str) -> dict[str, Any]:
    """Through both plots."""
    ends = {"x0": at, "x1": at, "y0": 0, "y1": 1, "xref": "x", "yref": "paper"}
    return {"type": "line", **ends, "line": {"color": colour, "width": 1, "dash": dash}}


def _note(at: float, text: str, height: float, ink: Ink) -> dict[str, Any]:
    return {
        "x": math.log10(at), "y": height, "xref": "x", "yref": "paper", "text": escape(text), "showarrow": False,
        "xanchor": "left", "yanchor": "top", "font": {"size": 11, "color": ink.muted},
    }  # fmt: skip


def _spans(study: Study, points: Sequence[Point]) -> tuple[Span, Span]:
    rates = around((point.busbw_bytes_s(study.setting.op) for point in points), below=2.0, above=2.0)
    return rates, around((point.time_s for point in points), below=2.0, above=2.0)


def _layout(ink: Ink, traces: Sequence[go.Scatter], grown: float = _GROWN) -> dict[str, Any]:
    names = {trace.name for trace in traces if trace.showlegend}
    above_px = legend_px(names)
    layout = frame(ink, _key(traces), above_px)
    more_px = round((grown - 1) * PLOT_PX)
    height = layout["height"] + more_px
    return {**layout, "height": height, "legend": legend_above(above_px, height)}


def _is_faded(trace: go.Scatter) -> bool:
    return any(opacity < 1 for opacity in trace.marker.opacity or ())


def _key(traces: Sequence[go.Scatter]) -> list[str]:
    kinds = {str(trace.meta) for trace in traces}
    told = [f"points: {', '.join(sorted(kinds - {MODELLED, 'band'}))}", "upright: 95 % interval"]
    told += [f"dashed: {MODELLED}"] if MODELLED in kinds else []
    told += ["shaded: its band"] if "band" in kinds else []
    told += [FADED] if any(_is_faded(trace) for trace in traces) else []
    return list(listed(told))
