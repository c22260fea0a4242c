"""The collectives of a device in a Markdown report: curves as numbers, measured and modelled in columns of their own."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from suite.collectives.model.alpha_beta import Fit
from suite.collectives.series import Point, is_without_a_link
from suite.collectives.study import Modelled, Study, studies
from suite.report.collective_words import (
    ABOUT,
    CROSSOVER_TITLES,
    FIT_TITLES,
    MODELLED,
    NO_LINK,
    band_note,
    beyond_words,
    crossover_row,
    fit_row,
    modelled_label,
    point_doubts,
    setting_title,
    title_of,
)
from suite.report.words import duration, message_size, si
from suite.rows import ResultRow

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]
Text = Callable[[str], str]


def collective_blocks(
    rows: Sequence[ResultRow], label: str, table: Table, text: Text, shared: Collection[int] = ()
) -> Iterator[str]:
    """Blocks of Markdown; ``table`` and ``text`` are the report's: they escape cells and words.

    ``shared`` are the ids of results whose ranks shared cores.
    """
    found = studies(rows, shared)
    told = [*[ABOUT] * bool(found), *[NO_LINK] * any(map(is_without_a_link, rows))]
    if told:
        yield f"### Collectives of {text(label)}"
    yield from map(text, told)
    for study in found:
        yield f"#### {text(setting_title(study.setting))}"
        yield table(FIT_TITLES, (_told(model) for model in study.models))
        if study.crossovers:
            yield table(CROSSOVER_TITLES, (crossover_row(each) for each in study.crossovers))
        for ranks in study.worlds:
            yield text(f"{title_of(study, ranks)}: time and busbw, {study.setting.evidence} and {MODELLED}")
            titles, cells = _curves(study, ranks)
            yield table([*map(text, titles)], cells)
        beyond = list(beyond_words(study))
        if beyond:
            yield text(band_note())
            yield "\n".join(f"- {text(line)}" for line in beyond)


def _told(model: Modelled) -> tuple[str, ...]:
    cells, reason = fit_row(model)
    return (*cells[:-1], reason) if reason else cells


def _curves(study: Study, ranks: int) -> tuple[list[str], list[list[str]]]:
    shown = [model for model in study.models if model.curve.of(ranks)]
    titles = ["Message"]
    for model in shown:
        titles += [model.curve.way.label, *([modelled_label(model.curve.way)] if isinstance(model.fit, Fit) else [])]
    sizes = sorted({point.message_bytes for model in shown for point in model.curve.of(ranks)})
    return titles, [[message_size(each), *(cell for model in shown for cell in _cells(model, ranks, each))] for each in sizes]


def _cells(model: Modelled, ranks: int, message_bytes: int) -> Iterator[str]:
    op = model.curve.setting.op
    points = [point for point in model.curve.of(ranks) if point.message_bytes == message_bytes]
    yield "; ".join(f"{duration(point.time_s)}, {si(point.busbw_bytes_s(op), 'B/s')}{_marks(point)}" for point in points)
    if isinstance(model.fit, Fit):
        yield duration(model.fit.time_s(ranks, message_bytes)) if message_bytes >= model.fit.from_bytes else ""


def _marks(point: Point) -> str:
    return f" ({point_doubts(point)})" if point.doubts else ""
