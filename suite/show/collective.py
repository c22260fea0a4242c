"""What is made of a run's collectives, beneath its tables: fits, crossings, and larger worlds in their bands."""

from collections.abc import Iterator, Sequence

from suite.collectives.study import Study, studies
from suite.report.collective_words import (
    CROSSOVER_TITLES,
    FIT_TITLES,
    MODELLED,
    band_note,
    beyond_words,
    crossover_row,
    fit_row,
    setting_title,
)
from suite.report.printable import printable
from suite.rows import ResultRow
from suite.show.screen import Screen
from suite.show.table import Column, Row, table

_RANKS = {"Formula": 2, "R^2": 3, "Transfer": 4}  # what goes first on a narrow screen


def study_lines(rows: Sequence[ResultRow], screen: Screen) -> Iterator[str]:
    """A section for each operation, format and transport; nothing where no row is of a collective with a bandwidth."""
    found = studies(rows)
    for study in found:
        yield ""
        yield screen.paint(printable(f"fits to {setting_title(study.setting)}, {MODELLED}"), "bold")
        yield from _study(study, screen)
    if any(True for study in found for _ in beyond_words(study)):
        yield ""
        yield band_note()


def _study(study: Study, screen: Screen) -> Iterator[str]:
    columns = [Column(title.lower() if title not in ("B", "R^2") else title, _RANKS.get(title, 0)) for title in FIT_TITLES]
    rows = [fit_row(model) for model in study.models]
    yield from table(columns, [Row(cells, reason, "dim" if reason else "") for cells, reason in rows], screen)
    if study.crossovers:
        heads = [Column("ranks")] + [Column(title.lower()) for title in CROSSOVER_TITLES[1:]]
        yield from table(heads, [Row(crossover_row(each)) for each in study.crossovers], screen)
    yield from (f"  {printable(line)}" for line in beyond_words(study))
