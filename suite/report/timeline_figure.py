"""One case over time as a figure: its samples, and clock, power and throttle reasons under them on the same axis."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from suite.report.figures import frame
from suite.report.heat import label
from suite.report.palette import INKS, Ink, Theme
from suite.report.timeaxis import TimeAxis
from suite.report.timeline import Timeline, Track
from suite.report.words import common_unit, duration, si

_POINTS = 2_000  # of one track: more than pixels across
_TALL_PX, _LOW_PX, _GAP_PX, _ABOVE_PX, _BELOW_PX = 190, 110, 26, 40, 48
_LAUNCH, _POWER = "One launch", "Power (W)"
_TRACK_COLOURS = ("#0099fe", "#bd8900", "#a22cad")


def timeline_figure(found: Timeline, power_limit_w: float | None, theme: Theme = "light") -> go.Figure:
    """Samples above, clocks and power under them; idle times are cut short, and the axis says at which second each part began.

    Without times of samples they stand in their order, and alone.
    """
    ink = INKS[theme]
    panes = list(_panes(found))
    heights = [_TALL_PX, *[_LOW_PX] * (len(panes) - 1)]
    whole = _ABOVE_PX + sum(heights) + _GAP_PX * (len(panes) - 1) + _BELOW_PX
    plot = whole - _ABOVE_PX - _BELOW_PX
    figure = go.Figure([trace for number, (_, tracks) in enumerate(panes) for trace in _traces(found, tracks, number)])
    figure.update_layout(**_layout(ink, whole))
    top = plot
    for number, ((title, _), height) in enumerate(zip(panes, heights, strict=True)):
        name = "yaxis" if number == 0 else f"yaxis{number + 1}"
        figure.update_layout({name: _upright(title, ink, [(top - height) / plot, top / plot])})
        top -= height + _GAP_PX
    figure.update_layout(xaxis=_across(found, ink, "y" if len(panes) == 1 else f"y{len(panes)}"))
    _breaks(figure, found, ink)
    for place, (title, _) in enumerate(panes, 1):
        if power_limit_w and title == _POWER:
            figure.add_shape(_limit(power_limit_w, place, ink))
    return figure


def _panes(found: Timeline) -> Iterator[tuple[str, Sequence[Track]]]:
    yield f"{_LAUNCH} ({_unit(found)[1]})", [found.launches]
    if found.axis is None or not found.timed:
        return
    if found.clocks:
        yield "Clock (Hz)", found.clocks
    if found.power:
        yield _POWER, [found.power]
    if found.temperature:
        yield "Temperature (°C)", [found.temperature]
    held = [reason for reason in found.throttle if any(reason.values)]
    if held:
        yield "Throttled", held


def _unit(found: Timeline) -> tuple[float, str]:
    """The unit of the samples' axis and its seconds: of a prefix alone, ``30m``, nobody could tell whether it is minutes."""
    return common_unit(found.launches.values)


def _traces(found: Timeline, tracks: Sequence[Track], pane: int) -> Iterator[go.Scatter]:
    axis = found.axis if found.timed else None
    for number, track in enumerate(tracks):
        x, y, texts = _thinned(track, axis, _unit(found)[0] if pane == 0 else 1.0)
        is_reason = track in found.throttle
        yield go.Scatter(
            x=x,
            y=y,
            yaxis="y" if pane == 0 else f"y{pane + 1}",
            mode="markers" if pane == 0 else "lines",
            marker={"size": 4, "color": _TRACK_COLOURS[0], "opacity": 0.55},
            line={"color": _TRACK_COLOURS[number % 3], "width": 1.5, "shape": "hv" if is_reason else "linear"},
            connectgaps=False,
            hovertext=texts,
            hoverinfo="text",
            name=label(track.name),
            showlegend=len(tracks) > 1,
            meta=label(track.channel),
        )


def _thinned(track: Track, axis: TimeAxis | None, unit: float) -> tuple[list[float | None], list[float | None], list[str]]:
    """At most ``_POINTS`` readings over ``unit``, evenly chosen, with a hole wherever the time was idle: no line crosses it."""
    step = -(-len(track.values) // _POINTS)
    x: list[float | None] = []
    y: list[float | None] = []
    texts = []
    stretch = None
    for number in range(0, len(track.values), step):
        value = track.values[number]
        if axis is None or not track.times_s:
            at, when = float(number), f"sample {number + 1}"
        else:
            time_s = track.times_s[number]
            at, when = axis.at(time_s), f"at {time_s:.4g} s"
            if stretch is not None and axis.stretch_of(time_s) != stretch:
                x, y, texts = [*x, None], [*y, None], [*texts, ""]
            stretch = axis.stretch_of(time_s)
        x.append(at)
        y.append(value / unit)
        texts.append(escape(f"{track.name} {_written(value, track.unit)}, {when}"))
    return x, y, texts


def _written(value: float, unit: str) -> str:
    if unit == "s":
        return duration(value)
    return si(value, unit) if unit in ("Hz", "W") else f"{value:g} {unit}".rstrip()


def _layout(ink: Ink, height: int) -> dict[str, Any]:
    shared = frame(ink, (), _ABOVE_PX)
    legend = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "bgcolor": "rgba(0,0,0,0)"}
    return {**shared, "height": height, "margin": {**shared["margin"], "b": _BELOW_PX}, "legend": legend, "uirevision": "kept"}


def _upright(title: str, ink: Ink, domain: list[float]) -> dict[str, Any]:
    ticks = {"tickformat": "~s"} if "(Hz)" in title else {}
    return {
        "domain": domain,
        "title": {"text": title, "standoff": 6, "font": {"size": 11}},
        "gridcolor": ink.grid,
        "zeroline": False,
        "nticks": 5,
        **ticks,
    }


def _across(found: Timeline, ink: Ink, anchor: str) -> dict[str, Any]:
    shared = {"gridcolor": ink.grid, "zeroline": False, "anchor": anchor}
    if found.axis is None or not found.timed:
        return {**shared, "title": {"text": "Samples in their order", "standoff": 6}}
    ticks = found.axis.ticks()
    return {
        **shared,
        "range": [-0.01, 1.01],
        "tickmode": "array",
        "tickvals": [tick.at for tick in ticks],
        "ticktext": [tick.label for tick in ticks],
        "title": {"text": "Seconds; shaded: idle, cut short" if found.axis.gaps else "Seconds", "standoff": 6},
    }


def _breaks(figure: go.Figure, found: Timeline, ink: Ink) -> None:
    for left, right in found.axis.gaps if found.axis is not None and found.timed else []:
        place = {"x0": left, "x1": right, "y0": 0, "y1": 1, "xref": "x", "yref": "paper"}
        figure.add_shape({"type": "rect", **place, "fillcolor": ink.grid, "line": {"width": 0}, "layer": "below"})


def _limit(power_limit_w: float, number: int, ink: Ink) -> dict[str, Any]:
    y = "y" if number == 1 else f"y{number}"
    line = {"color": ink.alert, "width": 1, "dash": "dot"}
    return {
        "type": "line",
        "x0": 0,
        "x1": 1,
        "xref": "paper",
        "y0": power_limit_w,
        "y1": power_limit_w,
        "yref": y,
        "line": line,
    }
