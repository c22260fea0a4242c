"""Lines through results over one of their sizes: one a device, implementation or setting, never through two kinds of number."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import plotly.graph_objects as go

from suite.report.axes import Span, around, powers_of_two, with_two_powers
from suite.report.figures import LABEL_CHARACTERS, LABEL_PX, PLOT_PX, frame, legend_above, legend_px, log_axis
from suite.report.heat import label
from suite.report.hover import hover_text, known_by
from suite.report.key import listed
from suite.report.palette import DOUBTFUL_OPACITY, INKS, OTHER_REGIME_GLYPH, REGIME_GLYPHS, Ink, Theme, faint, symbol, themed
from suite.report.words import doubtful
from suite.rows import ResultRow

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_MARKER_PX, _LINE_PX = 8, 1.6
_NAME_CHARACTERS = 44
_INTERVAL_OPACITY = 0.5
_LEAST_PX, _SHORT_PX = 30, 50  # above the plot: for the buttons, and for a legend of two lines


class Quantity(NamedTuple):
    """An axis: its title with its unit, the value of a row on it, and how its ticks are written.

    ``has_interval`` where it is the time or follows from that alone, whose interval is then its own.
    """

    title: str
    value: Callable[[ResultRow], float | None]
    ticks: str = "~s"
    is_share: bool = False
    is_power_of_two: bool = False
    is_less_better: bool = False
    has_interval: bool = True


class Line(NamedTuple):
    """Results that belong together, and how they are told from others.

    Where ``member`` is given, the legend has an entry for each member, by colour, and one for each ``variant``, by dash.
    """

    name: str
    colour: str
    rows: tuple[ResultRow, ...]
    dash: str = "solid"
    member: str = ""
    variant: str = ""


class Level(NamedTuple):
    """A height that lines are held against, such as a bandwidth of the spec sheet."""

    name: str
    value: float
    dash: str = "solid"


class Part(NamedTuple):
    """What of a line looks the same: a regime and a kind of evidence."""

    cache: str
    load: str
    dispatch: str
    evidence: str


def curve_figure(
    lines: Sequence[Line], across: Quantity, up: Quantity, levels: Sequence[Level] = (), theme: Theme = "light"
) -> go.Figure | None:
    """Every line against ``across``; ``None`` where no row has a place.

    A line connects what is of one regime and one kind of evidence, and what was not measured is hollow and dotted.  Points in
    doubt are faded.  ``customdata`` of a point is what ``known_by`` says.
    """
    ink = INKS[theme]
    lines = [line._replace(colour=themed(line.colour, ink)) for line in lines]
    traces = [trace for line in lines for trace in _traces(line, across, up, ink)]
    if not traces:
        return None
    entries = list(_entries(lines, ink))
    x = around((value for trace in traces for value in trace.x), below=1.25, above=1.25)
    heights = [value for trace in traces for value in trace.y]
    y = _room_for_words(around([*heights, *(level.value for level in levels)], below=1.5, above=1.5), levels, up)
    parts = {part for line in lines for part in parts_of(line.rows) if part.evidence}
    rows = [row for line in lines for row in line.rows]
    named = {trace.name for trace in (*traces, *entries) if trace.showlegend}
    figure = go.Figure([*traces, *entries])
    figure.update_layout(_layout(list(_key(parts, rows, up)), named, ink))
    figure.update_xaxes(_across(across, x, ink))
    figure.update_yaxes(_upright(up, heights, levels, y, ink))
    for level in levels:
        figure.add_hline(y=level.value, line={"color": ink.muted, "width": 1.2, "dash": level.dash}, layer="below")
    for note in _notes(levels, up, figure.layout.yaxis.range, ink):
        figure.add_annotation(note)
    return figure


def _entries(lines: Sequence[Line], ink: Ink) -> Iterator[go.Scatter]:
    """Entries of the legend alone: members by colour, variants by dash."""
    members = {line.member: line.colour for line in lines if line.member}
    variants = {line.variant: line.dash for line in lines if line.member and line.variant}
    for name, colour in members.items():
        yield _entry(name, {"color": colour, "width": 3}, name)
    for name, dash in variants.items() if len(variants) > 1 else ():
        yield _entry(name, {"color": ink.muted, "width": _LINE_PX, "dash": dash}, "")


def _entry(name: str, line: dict[str, Any], group: str) -> go.Scatter:
    shown = label(name, _NAME_CHARACTERS)
    owner = {"legendgroup": label(group, _NAME_CHARACTERS)} if group else {}
    return go.Scatter(
        x=[None], y=[None], mode="lines", line=line, name=shown, hoverinfo="skip", showlegend=True, meta="key", **owner
    )


def parts_of(rows: Iterable[ResultRow]) -> dict[Part, list[ResultRow]]:
    """What of some results looks the same."""
    found: dict[Part, list[ResultRow]] = {}
    for row in rows:
        found.setdefault(Part(row.cache, row.load, row.dispatch, row.evidence), []).append(row)
    return found


def _traces(line: Line, across: Quantity, up: Quantity, ink: Ink) -> Iterator[go.Scatter]:
    first = True
    for part, rows in sorted(parts_of(line.rows).items()):
        placed = sorted(
            ((x, y, row) for row in rows if (x := across.value(row)) and (y := up.value(row)) and math.isfinite(x * y)),
            key=lambda each: (each[0], each[2].result_id),
        )
        if placed:
            yield _trace(line, part, placed, up, ink, first)
            first = False


def _trace(
    line: Line, part: Part, placed: Sequence[tuple[float, float, ResultRow]], up: Quantity, ink: Ink, first: bool
) -> go.Scatter:
    x, y, rows = zip(*placed, strict=True)
    is_measured = part.evidence == "measured"
    name = label(line.member or line.name, _NAME_CHARACTERS)
    return go.Scatter(
        x=x,
        y=y,
        error_y=_intervals(rows, y, line.colour) if up.has_interval else None,
        mode="lines+markers" if len(set(x)) == len(x) else "markers",
        line={"color": line.colour, "width": _LINE_PX, "dash": line.dash if is_measured else "dot"},
        marker={
            "symbol": symbol(*part),
            "size": _MARKER_PX,
            "color": line.colour,
            "opacity": [DOUBTFUL_OPACITY if doubtful(row) else 1.0 for row in rows],
            "line": {"width": 0.7 if is_measured else 1.8, "color": ink.background},
        },
        hovertext=[hover_text(row) for row in rows],
        hoverinfo="text",
        customdata=[known_by(row) for row in rows],
        name=name,
        legendgroup=name,
        showlegend=first and not line.member,
        meta="points",
    )


def _intervals(rows: Sequence[ResultRow], heights: Sequence[float], colour: str) -> dict[str, Any]:
    """The 95 % interval of the median, turned over where more is faster: a rate's relative interval is that of its time."""
    down, up = [], []
    for row, height in zip(rows, heights, strict=True):
        low, high = row.interval_s or (None, None)
        known = row.p50_s and low and high
        is_time = row.p50_s is not None and math.isclose(height, row.p50_s)
        slower, faster = ((row.p50_s or 1) / high, (row.p50_s or 1) / low) if known and low and high else (1.0, 1.0)
        least, most = (height / faster, height / slower) if is_time else (height * slower, height * faster)
        down.append(max(0.0, height - least))
        up.append(max(0.0, most - height))
    pale = faint(colour, _INTERVAL_OPACITY)
    return {"type": "data", "symmetric": False, "arrayminus": down, "array": up, "width": 0, "thickness": 1, "color": pale}


def _across(across: Quantity, span: Span, ink: Ink) -> dict[str, Any]:
    if not across.is_power_of_two:
        return log_axis(across.title, span, ink, across.ticks)
    span = with_two_powers(span)
    return {**log_axis(across.title, span, ink, across.ticks), **powers_of_two(span, lambda value: f"{value:,}")}


def _upright(up: Quantity, heights: Sequence[float], levels: Sequence[Level], span: Span, ink: Ink) -> dict[str, Any]:
    axis = log_axis(up.title, span, ink, up.ticks)
    if not up.is_share:
        return axis
    top = max([*heights, *(level.value for level in levels), 0.05])
    plain = {name: value for name, value in axis.items() if name not in ("type", "range", "dtick", "minor")}
    high = max(1.0, top * 1.05)
    ticks = [number / 5 for number in range(math.floor(high * 5) + 1)]
    words = [f"{100 * tick:.0f} %" for tick in ticks]
    return {**plain, "type": "linear", "range": [0, high], "tickmode": "array", "tickvals": ticks, "ticktext": words}


def _layout(key: Sequence[str], named: Collection[str], ink: Ink) -> dict[str, Any]:
    """A short legend above the plot; a long one below the key, where the room that a wide screen leaves is no hole."""
    needed_px = legend_px(named) if len(named) > 1 else 0
    is_above = needed_px <= _SHORT_PX
    layout = frame(ink, key, max(_LEAST_PX, needed_px if is_above else 0))
    height = layout["height"] + (0 if is_above else needed_px)
    layout |= {"height": height, "margin": {**layout["margin"], "b": layout["margin"]["b"] + (0 if is_above else needed_px)}}
    legend = legend_above(needed_px, height)
    legend |= {} if is_above else {"y": needed_px / height, "yanchor": "top"}
    return {**layout, "showlegend": len(named) > 1, "legend": legend, "uirevision": "kept"}


def _notes(levels: Sequence[Level], up: Quantity, span: Sequence[float], ink: Ink) -> Iterator[dict[str, Any]]:
    """Each level in words above its line, the highest first; those closer than their words share a place, a line each."""
    for near in reversed(_near(levels, up, span[1] - span[0])):
        place = {"x": 1, "xref": "paper", "xanchor": "right", "y": _height(near[-1], up), "showarrow": False, "align": "right"}
        text = "<br>".join(label(level.name, LABEL_CHARACTERS) for level in reversed(near))
        yield {**place, "yanchor": "bottom", "text": text, "font": {"size": 11, "color": ink.muted}}


def _near(levels: Sequence[Level], up: Quantity, length: float) -> list[list[Level]]:
    """Levels in ascending groups whose words would cover each other, on an axis of this length."""
    groups: list[list[Level]] = []
    for level in sorted(levels, key=lambda level: level.value):
        if groups and _height(level, up) - _height(groups[-1][-1], up) < length * LABEL_PX / PLOT_PX:
            groups[-1].append(level)
        else:
            groups.append([level])
    return groups


def _height(level: Level, up: Quantity) -> float:
    return level.value if up.is_share else math.log10(level.value)


def _room_for_words(span: Span, levels: Sequence[Level], up: Quantity) -> Span:
    """The range with room for the words above its highest levels."""
    if not levels or up.is_share:
        return span
    highest = _near(levels, up, span.decades)[-1]
    reach = math.log10(highest[-1].value) + span.decades * LABEL_PX * len(highest) / PLOT_PX
    return Span(span.low, max(span.high, 10**reach))


def _key(parts: Iterable[Part], rows: Sequence[ResultRow], up: Quantity) -> Iterator[str]:
    """What symbols mean, and what of the results has no place here: counted, never silent."""
    found = sorted(set(parts))
    regimes = dict.fromkeys((part.cache, part.load, part.dispatch) for part in found)
    entries = [f"{REGIME_GLYPHS.get(regime, OTHER_REGIME_GLYPH)} {'/'.join(regime)}" for regime in regimes]
    entries += [f"hollow, dotted: {kind}" for kind in sorted({part.evidence for part in found} - {"measured"})]
    entries += ["faded: in doubt, hover says why"] if any(map(doubtful, rows)) else []
    entries += ["upright: 95 % interval"] if up.has_interval else []
    yield from listed(entries)
    absent = sum(up.value(row) is None for row in rows)
    if absent:
        yield f"not drawn: {absent} of {len(rows)} results have no {up.title.split('(')[0].strip().lower()}"
