"""A heat map of results: categories across and down, the best value of each pair as colour and in figures."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import plotly.graph_objects as go

from suite.report.figures import LINE_PX, frame, key_px
from suite.report.hover import hover_text, known_by
from suite.report.key import listed, wrapped
from suite.report.palette import INKS, OTHER_REGIME_GLYPH, REGIME_GLYPHS, SEQUENTIAL, Ink, Theme
from suite.report.printable import printable, shortened
from suite.report.sources import Sources, sources_of
from suite.report.words import doubtful
from suite.rows import ResultRow

USUAL = ("cold", "sustained", "device")
DOUBT, OTHER_EVIDENCE, FAILED = "?", "°", "✗"
_CELL_PX, _CELL_WIDTH_PX, _HEAD_PX = 30, 62, 30
_GAP_PX = 6  # between the texts of neighbours
_UNIT_PX = 10  # of a unit on a line of its own, in small letters
_HOVER_CHARACTERS = 48  # of a line: as wide as the narrowest of these figures, which would cut off what is longer
_LEAST_CELLS = 5  # across: a single one should not be a bar
_CHARACTER_PX = 6.6
_LABEL_CHARACTERS = 34
# A name of a row that is longer stands above its cells, in so many pixels: a telephone shows these too.
_BESIDE_CHARACTERS, _OVER_CHARACTERS, _NAME_PX = 14, 54, 18
_LETTERS = "ᵃᵇᶜᵈᵉᶠᵍʰ"  # of sources: the first has none
_DARK_BELOW = 0.55  # of the scale: text on it is light


class Cell(NamedTuple):
    """One pair of categories: what it shows, 0 to 1 of the scale (``None`` without a colour), and the result behind it.

    A unit behind the first space of ``text`` has a line of its own where both would be wider than a cell.
    """

    text: str
    level: float | None
    row: ResultRow


class HeatMap(NamedTuple):
    """``cells`` by (row, column), numbers of ``rows`` and ``columns``.

    ``scale`` names the value and its ends; ``note`` stands in the key.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    cells: Mapping[tuple[int, int], Cell]
    scale: tuple[str, str, str]
    note: str = ""


def heat_figure(heat: HeatMap, theme: Theme = "light") -> go.Figure:
    """Colour by value and the value in figures; the points that lie on the cells carry the case for hover and click.

    ``customdata`` of each point is what ``known_by`` says.  What is not measured, not in the usual regime or in doubt is marked
    in the cell, and the key says with what; so is what is of another backend or execution than the others.
    """
    ink, shown = INKS[theme], sorted(heat.cells.items())
    sources = sources_of(cell.row for _, cell in shown)
    marks = [f"{_letter(sources, cell.row)}{_marks(cell.row)}" for _, cell in shown]
    key = list(_key(heat, marks, sources))
    slant = _slant(heat)
    above = round(_CHARACTER_PX * max(map(len, heat.columns), default=0) * 0.75) + 34 if slant else _HEAD_PX + LINE_PX
    figure = go.Figure([_colours(heat), _points(shown, marks, theme)])
    layout = frame(ink, key, above)
    below = 14 + key_px(wrapped(key))
    layout["annotations"] = [{**each, "yshift": -8} for each in layout["annotations"]]
    margin = {"l": _left_px(heat), "r": _right_px(heat), "t": above, "b": below}
    is_over = _is_over(heat)
    height = above + _row_px(heat) * max(1, len(heat.rows)) + _NAME_PX // 2 * is_over + below
    figure.update_layout({**layout, "margin": margin, "height": height, "showlegend": False})
    figure.update_layout(xaxis=_axis(heat.columns, slant), yaxis=_axis(heat.rows, slant=False))
    figure.update_layout(width=width_px(heat), autosize=False)
    figure.update_xaxes(side="top", domain=[0, len(heat.columns) / max(len(heat.columns), _LEAST_CELLS)])
    # Where a page makes the figure wider, for what hovers over it, its cells stay as wide as they are here.
    figure.update_xaxes(scaleanchor="y", scaleratio=_CELL_WIDTH_PX / _row_px(heat), constrain="domain", constraintoward="left")
    top = -0.5 - is_over * _NAME_PX / 2 / _row_px(heat)
    figure.update_yaxes(range=[len(heat.rows) - 0.5, top], showticklabels=not is_over)
    for annotation in figure.layout.annotations:
        annotation.xshift = 12 - margin["l"]
    for name in _names_over(heat, ink) if is_over else ():
        figure.add_annotation(name)
    return figure


def _is_over(heat: HeatMap) -> bool:
    """Whether the names of rows stand above their cells."""
    return max((len(name) for name in heat.rows), default=0) > _BESIDE_CHARACTERS


def _row_px(heat: HeatMap) -> int:
    return _CELL_PX + _NAME_PX * _is_over(heat) + _UNIT_PX * any(_is_two_lines(cell) for cell in heat.cells.values())


def _is_two_lines(cell: Cell) -> bool:
    """The sign of a regime is as wide as two characters, and another backend's letter is one more."""
    characters = len(cell.text) + len(_marks(cell.row)) + _is_unusual(cell.row) + 1
    return " " in cell.text and characters * _CHARACTER_PX > _CELL_WIDTH_PX - _GAP_PX


def _written(cell: Cell, marked: str) -> str:
    """The text with its marks behind the number, as Plotly takes it."""
    if not _is_two_lines(cell):
        return escape(f"{cell.text}{marked}")
    number, _, unit = cell.text.partition(" ")
    return f'{escape(f"{number}{marked}")}<br><span style="font-size:10px">{escape(unit)}</span>'


def _names_over(heat: HeatMap, ink: Ink) -> Iterator[dict[str, Any]]:
    for number, name in enumerate(heat.rows):
        yield {
            "text": label(name, _OVER_CHARACTERS),
            "xref": "paper",
            "x": 0,
            "y": number - 0.5,
            "xanchor": "left",
            "yanchor": "middle",
            "showarrow": False,
            "font": {"size": 12, "color": ink.text},
        }


def width_px(heat: HeatMap) -> int:
    """As wide as its cells have to be read: on a narrower screen a page scrolls."""
    return _left_px(heat) + _right_px(heat) + _CELL_WIDTH_PX * max(_LEAST_CELLS, len(heat.columns))


def _left_px(heat: HeatMap) -> int:
    if _is_over(heat):
        return 12
    longest = max((len(name) for name in heat.rows), default=0)
    return round(_CHARACTER_PX * longest) + 24


def _slant(heat: HeatMap) -> bool:
    """Whether the names of columns stand aslant: one is wider than a cell."""
    return max((len(name) for name in heat.columns), default=0) * _CHARACTER_PX > _CELL_WIDTH_PX


def _right_px(heat: HeatMap) -> int:
    """Room for the last column's name where it stands aslant: Plotly drops a name that would leave the figure."""
    if not _slant(heat) or len(heat.columns) < _LEAST_CELLS:
        return 16
    last = min(len(heat.columns[-1]), _LABEL_CHARACTERS)
    return max(16, round(_CHARACTER_PX * last * 0.75) - _CELL_WIDTH_PX // 2 + 12)


def label(text: str, length: int = _LABEL_CHARACTERS) -> str:
    """A name as a figure takes it: of one line, not endless, and without anything that Plotly would read as markup.

    One that has to be cut keeps what tells it from others.
    """
    return escape(shortened(printable(text), length))


def _axis(names: Sequence[str], slant: bool) -> dict[str, Any]:
    """Positions are numbers and names only their words: two that read the same stay two."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": [label(name) for name in names],
        "tickangle": -45 if slant else 0,
        "range": [-0.5, len(names) - 0.5],
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
    }


def _colours(heat: HeatMap) -> go.Heatmap:
    levels = [
        [cell.level if (cell := heat.cells.get((row, column))) is not None else None for column in range(len(heat.columns))]
        for row in range(len(heat.rows))
    ]
    gap = 2 + _NAME_PX * _is_over(heat)
    return go.Heatmap(z=levels, zmin=0, zmax=1, colorscale=SEQUENTIAL, showscale=False, hoverinfo="skip", xgap=2, ygap=gap)


def _points(shown: Sequence[tuple[tuple[int, int], Cell]], marks: Sequence[str], theme: Theme) -> go.Scatter:
    """Invisible squares with the text of each cell: a heat map itself cannot be chosen from."""
    ink = INKS[theme]
    return go.Scatter(
        x=[column for (_, column), _ in shown],
        y=[row for (row, _), _ in shown],
        mode="markers+text",
        text=[_written(cell, marked) for (_, cell), marked in zip(shown, marks, strict=True)],
        textposition="middle center",
        textfont={"size": 12, "color": [_ink(cell.level, ink.text) for _, cell in shown]},
        marker={"symbol": "square", "size": 24, "color": "rgba(0,0,0,0)"},
        hovertext=[hover_text(cell.row, _HOVER_CHARACTERS) for _, cell in shown],
        hoverinfo="text",
        customdata=[known_by(cell.row) for _, cell in shown],
        cliponaxis=False,
        meta="cells",
    )


def _ink(level: float | None, otherwise: str) -> str:
    if level is None:
        return otherwise
    return "#ffffff" if level < _DARK_BELOW else "#111111"


def _is_unusual(row: ResultRow) -> bool:
    return (row.cache, row.load, row.dispatch) != USUAL


def _marks(row: ResultRow) -> str:
    glyph = REGIME_GLYPHS.get((row.cache, row.load, row.dispatch), OTHER_REGIME_GLYPH) if _is_unusual(row) else ""
    return f"{glyph}{OTHER_EVIDENCE if row.evidence != 'measured' else ''}{DOUBT if doubtful(row) else ''}"


def _letter(sources: Sources, row: ResultRow) -> str:
    place = sources.names.index(name) if sources.several and (name := sources.of(row)) in sources.names else 0
    return _LETTERS[min(place, len(_LETTERS)) - 1] if place else ""


def _key(heat: HeatMap, marks: Sequence[str], sources: Sources) -> Iterator[str]:
    name, low, high = heat.scale
    entries = [f"{name}: dark {low} to bright {high}"]
    if sources.several:
        entries += [f"without a letter: {sources.names[0]}"]
        entries += [f"{letter} {source}" for letter, source in zip(_LETTERS, sources.names[1:], strict=False)]
    found = {mark for each in marks for mark in each}
    regimes = {glyph: "/".join(regime) for regime, glyph in REGIME_GLYPHS.items() if glyph in found}
    entries += [f"{glyph} {regime}" for glyph, regime in regimes.items()]
    entries += [f"{OTHER_EVIDENCE} not measured"] if OTHER_EVIDENCE in found else []
    entries += [f"{DOUBT} in doubt: hover says why"] if DOUBT in found else []
    if any(cell.text == FAILED for cell in heat.cells.values()):
        entries.append(f"{FAILED} no result: hover says why")
    yield from listed([*entries, *([heat.note] if heat.note else [])])
