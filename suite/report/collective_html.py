"""The collectives of a device in an HTML report: curves, fits beside them, crossings, and larger worlds in their bands."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import plotly.graph_objects as go

from suite.collectives.series import is_without_a_link
from suite.collectives.study import Study, studies
from suite.report.collective_figure import curves_figure, worlds_figure
from suite.report.collective_words import (
    ABOUT,
    CROSSOVER_TITLES,
    FIT_TITLES,
    MODELLED,
    NO_LINK,
    band_note,
    beyond_words,
    counted_points,
    crossover_row,
    fit_row,
    setting_title,
    title_of,
)
from suite.report.palette import THEMES, Theme
from suite.report.tables import scrolled
from suite.report.tags import Html, figure_place, join, tag
from suite.report.words import message_size
from suite.rows import ResultRow


def collective_sections(rows: Sequence[ResultRow], label: str, index: int, shared: Collection[int] = ()) -> Iterator[Html]:
    """What stands between the roofline and the results of a device; nothing where none of its collectives was timed.

    ``shared`` are the ids of results whose ranks shared cores.
    """
    found = studies(rows, shared)
    told = [*[ABOUT] * bool(found), *[NO_LINK] * any(map(is_without_a_link, rows))]
    if told:
        yield tag("h3", f"Collectives of {label}")
    yield from (tag("p", words, class_="small") for words in told)
    for number, study in enumerate(found):
        title = setting_title(study.setting)
        yield tag("details", tag("summary", title), *_study(study, index, number), class_="rungs", open=number == 0)


def collective_figures(
    rows: Sequence[ResultRow], index: int, shared: Collection[int] = ()
) -> Iterator[tuple[str, Mapping[Theme, go.Figure]]]:
    """Each figure in both themes, with the id of the place that waits for it; ``shared`` as for ``collective_sections``."""
    for number, study in enumerate(studies(rows, shared)):
        for ranks in study.worlds:
            yield _place(index, number, ranks), {theme: _needed(curves_figure(study, ranks, theme)) for theme in THEMES}
        if worlds_figure(study) is not None:
            yield _place(index, number, 0), {theme: _needed(worlds_figure(study, theme)) for theme in THEMES}


def _needed(figure: go.Figure | None) -> go.Figure:
    assert figure is not None, "a world that was measured has points, and one theme has what the other has"
    return figure


def _place(index: int, number: int, ranks: int) -> str:
    return f"collective-{index}-{number}-{ranks or 'worlds'}"


def _study(study: Study, index: int, number: int) -> Iterator[Html]:
    for ranks in study.worlds:
        text = f"{title_of(study, ranks)}: busbw above, time of the slowest rank below, against message size, all logarithmic"
        yield figure_place(_place(index, number, ranks), f"{text}; {counted_points(study)} in all.")
    if worlds_figure(study) is not None:
        largest = message_size(study.largest_bytes)
        text = f"Time of {largest} against ranks, both logarithmic: beyond the measured worlds {MODELLED}. "
        yield figure_place(_place(index, number, 0), text + band_note())
    yield _table(f"Fits to {setting_title(study.setting)}, {MODELLED}", FIT_TITLES, map(_fit, map(fit_row, study.models)))
    if study.crossovers:
        rows = ([tag("td", cell) for cell in crossover_row(each)] for each in study.crossovers)
        yield _table("Where ring and tree cross, measured and predicted", CROSSOVER_TITLES, rows)
    yield from (tag("p", line, class_="small") for line in beyond_words(study))


def _fit(row: tuple[tuple[str, ...], str]) -> list[Html]:
    cells, reason = row
    told = 3  # what a refused fit has too: algorithm, ranks, formula
    if not reason:
        return [tag("td", cell) for cell in cells]
    return [*(tag("td", cell) for cell in cells[:told]), tag("td", reason, colspan=len(cells) - told, class_="reason")]


def _table(caption: str, titles: Sequence[str], rows: Iterator[list[Html]]) -> Html:
    head = tag("thead", tag("tr", *(tag("th", title, scope="col") for title in titles)))
    body = tag("tbody", *(tag("tr", join(cells)) for cells in rows))
    return scrolled(tag("table", tag("caption", caption), head, body, class_="results"), caption)
