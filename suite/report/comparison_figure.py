"""A comparison as a figure: how much longer each case takes in B than in A, with the interval of that, the worst on top."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import plotly.graph_objects as go

from suite.compare import words
from suite.compare.comparison import Compared, Comparison
from suite.compare.verdict import Verdict
from suite.report.figures import frame
from suite.report.heat import label
from suite.report.hover import explained
from suite.report.key import listed
from suite.report.palette import INKS, Ink, Theme

MOST_CASES = 50  # that one figure keeps apart, the worst and the best of them
_ROW_PX, _HEAD_PX, _LEFT_PX, _MARKER_PX = 40, 18, 16, 9  # a row has room for a name clear of its interval and of the next
_NAME_PX, _NAME_CHARACTERS = 11, 54  # of a case's name over its row, which a telephone shows whole
_TIMES_FROM = 2  # from this ratio on changes are told as factors, as ``suite.compare.words.change`` does
_COLOURS = {"SLOWER": "#a64621", "UNDECIDED": "#7f7f7f", "SAME": "#086e70", "FASTER": "#0099fe"}
# Told apart by shape too: a colour alone is none for everybody.
_SYMBOLS = {"SLOWER": "triangle-right", "UNDECIDED": "diamond-open", "SAME": "circle", "FASTER": "triangle-left"}
_GLYPHS = {"SLOWER": "▶", "UNDECIDED": "◇", "SAME": "●", "FASTER": "◀"}


def comparison_figure(found: Comparison, theme: Theme = "light") -> go.Figure | None:
    """Ratios on a logarithmic axis around 1, which is no change; ``None`` where nothing was compared.

    ``customdata`` of a point is the id of B's result.
    """
    cases = shown(found.cases)
    if not cases:
        return None
    ink, with_backend = INKS[theme], found.has_several_backends
    names = _names(cases, with_backend)
    figure = go.Figure(
        [_trace(verdict, cases, ink, with_backend) for verdict in Verdict if any(c.verdict is verdict for c in cases)]
    )
    layout = frame(ink, list(_key(found, cases)), _HEAD_PX)
    margin = {**layout["margin"], "l": _LEFT_PX}
    height = _HEAD_PX + _ROW_PX * (len(cases) + 1) + margin["b"]
    reach = _reach(cases)
    figure.update_layout({**layout, "margin": margin, "height": height, "showlegend": False, "uirevision": "kept"})
    for note in figure.layout.annotations:
        note.xshift = 0  # the key begins where the plot does
    ticks = [1 / ratio for ratio in _ticks(reach)[::-1]] + [1.0, *_ticks(reach)]
    figure.update_xaxes(
        type="log",
        range=[-math.log10(reach), math.log10(reach)],
        tickvals=ticks,
        ticktext=_tick_words(ticks),
        tickangle=0,
        gridcolor=ink.grid,
        zeroline=False,
        title={"text": "B against A: longer to the right", "standoff": 8},
    )
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(cases))),
        ticktext=[label(name, _NAME_CHARACTERS) for name in names],
        range=[len(cases) - 0.5, -0.8],
        showticklabels=False,  # they are as wide as a telephone, and stand over their rows
        zeroline=False,
        showgrid=False,
    )
    for name in _names_over(names, ink):
        figure.add_annotation(name)
    figure.add_vline(x=1, line={"color": ink.muted, "width": 1, "dash": "dot"}, layer="below")
    return figure


def _names(cases: Sequence[Compared], with_backend: bool) -> list[str]:
    """Titles without the words that all of their job have; where they are too long, without settings that tell none apart."""
    titles = [words.title(case, with_backend).split(" ") for case in cases]
    for job in {title[0] for title in titles}:
        own = [set(title) for title in titles if title[0] == job]
        common = set.intersection(*own) - {job} if len(own) > 1 else set()
        titles = [[word for word in title if title[0] != job or word not in common] for title in titles]
    settings = {word.partition("=")[0] for title in titles for word in title if "=" in word}
    for setting in sorted(settings, key=len, reverse=True):
        if max(len(" ".join(title)) for title in titles) <= _NAME_CHARACTERS:
            break
        shorter = [[word for word in title if not word.startswith(f"{setting}=")] for title in titles]
        if len(set(map(tuple, shorter))) == len(set(map(tuple, titles))):
            titles = shorter
    return list(map(" ".join, titles))


def _names_over(names: Sequence[str], ink: Ink) -> Iterator[dict[str, Any]]:
    for place, name in enumerate(names):
        yield {
            "text": label(name, _NAME_CHARACTERS),
            "xref": "paper",
            "x": 0,
            "y": place - 0.42,
            "xanchor": "left",
            "yanchor": "middle",
            "showarrow": False,
            "font": {"size": _NAME_PX, "color": ink.text},
            "bgcolor": ink.background,  # no line of the grid passes through it
            "borderpad": 0,
        }


def _tick_words(ticks: Sequence[float]) -> list[str]:
    """All as factors where one is, else all as percentages: ``0.1x, 1x, 10x`` or ``-4.8 %, 0 %, +5 %``."""
    if any(not 1 / _TIMES_FROM < tick < _TIMES_FROM for tick in ticks):
        return [f"{tick:,.0f}x" if tick >= 10 else f"{tick:.3g}x" for tick in ticks]
    return ["0 %" if tick == 1 else words.change(tick).replace(".0 %", " %") for tick in ticks]


def shown(cases: Sequence[Compared]) -> list[Compared]:
    """All of them, or where they are too many those that changed most either way, in their order."""
    if len(cases) <= MOST_CASES:
        return list(cases)
    changed = {id(case) for case in sorted(cases, key=lambda case: -abs(case.gap.change))[:MOST_CASES]}
    return [case for case in cases if id(case) in changed]


def _trace(verdict: Verdict, cases: Sequence[Compared], ink: Ink, with_backend: bool) -> go.Scatter:
    own = [(place, case) for place, case in enumerate(cases) if case.verdict is verdict]
    reaches = [_interval(case) for _, case in own]
    return go.Scatter(
        x=[case.ratio for _, case in own],
        y=[place for place, _ in own],
        error_x={
            "type": "data",
            "symmetric": False,
            "arrayminus": [low for low, _ in reaches],
            "array": [high for _, high in reaches],
            "width": 0,
            "thickness": 1.5,
            "color": _COLOURS[verdict],
        },
        mode="markers",
        marker={
            "symbol": _SYMBOLS[verdict],
            "size": _MARKER_PX,
            "color": _COLOURS[verdict],
            "line": {"width": 1, "color": _COLOURS[verdict] if verdict is Verdict.UNDECIDED else ink.background},
        },
        hovertext=[comparison_hover(case, with_backend) for _, case in own],
        hoverinfo="text",
        customdata=[case.pair.b.row.result_id for _, case in own],
        name=verdict.value,
        meta="cases",
    )


def _interval(case: Compared) -> tuple[float, float]:
    found = case.judgement.interval
    if not case.is_known or not math.isfinite(found.high):
        return 0.0, 0.0
    return max(0.0, case.ratio - found.low), max(0.0, found.high - case.ratio)


def _reach(cases: Sequence[Compared]) -> float:
    """The ratio at both ends of the axis."""
    ends: list[float] = [end for case in cases for end in (case.ratio, 1 / case.ratio)]
    ends += [end for case in cases if case.is_known for end in (case.judgement.interval.high, 1 / case.judgement.interval.low)]
    furthest: float = max([1.02, *(end for end in ends if math.isfinite(end))])
    return min(1e6, math.exp(1.15 * math.log(furthest)))


def _ticks(reach: float) -> list[float]:
    """The largest round ratio that is inside: more words would meet on a telephone."""
    candidates = (1.005, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 30, 100, 1e3, 1e4, 1e5)
    inside = [each for each in candidates if each < reach]
    return inside[-1:]


def comparison_hover(case: Compared, with_backend: bool) -> str:
    """What the mouse shows of one case: its verdict, what bears on it, and what marks mean."""
    kind = "cycles" if case.in_cycles else "time"
    lines = [
        f"{case.verdict.value}: {words.change(case.ratio)} in {kind} (95 %: {words.interval_of(case)})",
        f"delta {words.within(case.gap.delta)}",
        *words.remarks(case),
    ]
    known = {mark: explained(mark) for entry in case.pair for mark in words.marks_of(entry)}
    lines += [text for mark, text in known.items() if text != mark]
    return "<br>".join([f"<b>{label(words.title(case, with_backend), 160)}</b>", *(label(line, 160) for line in lines)])


def _key(found: Comparison, cases: Sequence[Compared]) -> Iterator[str]:
    entries = [f"{_GLYPHS[verdict]} {verdict.value}" for verdict in Verdict if any(case.verdict is verdict for case in cases)]
    yield from listed([*entries, "across: 95 % interval"])
    if len(cases) < len(found.cases):
        yield f"the {len(cases)} of {len(found.cases)} that changed most"
