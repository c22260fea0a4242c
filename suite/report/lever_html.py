"""Levers of batch size in an HTML report: a figure, what each line says, and its numbers."""

from collections.abc import Iterator, Mapping, Sequence

import plotly.graph_objects as go

from suite.report.lever import ABOUT, Lever, levers, notes
from suite.report.lever_figure import lever_figure
from suite.report.palette import THEMES, Theme
from suite.report.roofs import RoofSet
from suite.report.tables import scrolled
from suite.report.tags import Html, figure_place, tag
from suite.rows import ResultRow


def lever_sections(rows: Sequence[ResultRow], label: str, index: int) -> Iterator[Html]:
    """What stands behind the roofline of a device; nothing where no weight matrix has enough batch sizes.

    The first is open, the others are a click away.
    """
    found = levers(rows)
    if not found:
        return
    yield tag("h3", f"Batch size as a lever of {label}")
    yield tag("p", ABOUT, class_="small")
    for number, lever in enumerate(found):
        parts = (
            _figure(lever, _place(index, number)),
            *(tag("p", note, class_="small") for note in notes(lever)),
            _table(lever),
        )
        yield tag("details", tag("summary", lever.title), *parts, class_="rungs", open=number == 0)


def lever_figures(rows: Sequence[ResultRow], roofs: RoofSet, index: int) -> Iterator[tuple[str, Mapping[Theme, go.Figure]]]:
    """Each figure in both themes, with the id of the place that waits for it."""
    for number, lever in enumerate(levers(rows)):
        yield _place(index, number), {theme: lever_figure(lever, roofs, theme) for theme in THEMES}


def _place(index: int, number: int) -> str:
    return f"lever-{index}-{number}"


def _figure(lever: Lever, identity: str) -> Html:
    points = sum(len(line.points) for line in lever.lines)
    text = (
        f"Rate against arithmetic intensity, both logarithmic, under the roofline: {points} results in {len(lever.lines)} "
        "lines, each from the least rows to the most, by the numbers of the table below."
    )
    return figure_place(identity, text)


def _table(lever: Lever) -> Html:
    titles = ("M", *(f"{line.number}: {line.name}" for line in lever.lines))
    head = tag("thead", tag("tr", *(tag("th", title, scope="col") for title in titles)))
    rows = (
        tag("tr", tag("th", str(m), scope="row"), *(tag("td", cell, class_="number") for cell in lever.cells(m)))
        for m in lever.sizes
    )
    caption = f"Rate and bound of each batch size, {lever.title}"
    return scrolled(tag("table", tag("caption", caption), head, tag("tbody", *rows), class_="results"), caption)
