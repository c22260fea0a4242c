"""What is made of a run's collectives, beneath its tables: fits, crossings, and larger worlds in their bands."""

import textwrap
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from suite.collectives.model.alpha_beta import Refusal
from suite.collectives.series import is_without_a_link
from suite.collectives.study import Study, studies
from suite.report.collective_words import (
    CROSSOVER_TITLES,
    FIT_TITLES,
    MODELLED,
    NO_LINK,
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

MANY = 4  # series that are refused for one reason
_RANKS = {"Formula": 2, "R^2": 3, "Transfer": 4}  # what goes first on a narrow screen


def study_lines(rows: Sequence[ResultRow], screen: Screen, shared_cores: Collection[int] = ()) -> Iterator[str]:
    """A section for each operation, format and transport; nothing where no collective was timed.

    ``shared_cores`` are the ids of results whose ranks shared cores.
    A reason that keeps many series from a fit is said once, behind them.
    """
    found = studies(rows, shared_cores)
    reasons = Counter(model.fit.reason for study in found for model in study.models if isinstance(model.fit, Refusal))
    shared = {reason: count for reason, count in reasons.items() if count >= MANY}
    for study in found:
        lines = list(_study(study, shared, screen))
        if lines:
            yield ""
            yield screen.paint(printable(f"fits to {setting_title(study.setting)}, {MODELLED}"), "bold")
            yield from lines
    if any(True for study in found for _ in beyond_words(study)):
        yield ""
        yield band_note()
    if shared:
        yield ""
    for reason, count in shared.items():
        yield from textwrap.wrap(printable(f"no fit of {count} series: {reason}"), screen.columns)
    if any(map(is_without_a_link, rows)):
        yield ""
        yield from textwrap.wrap(NO_LINK, screen.columns)


def _study(study: Study, shared: Collection[str], screen: Screen) -> Iterator[str]:
    columns = [Column(title.lower() if title not in ("B", "R^2") else title, _RANKS.get(title, 0)) for title in FIT_TITLES]
    rows = [fit_row(model) for model in study.models if not isinstance(model.fit, Refusal) or model.fit.reason not in shared]
    if rows:
        yield from table(columns, [Row(cells, reason, "dim" if reason else "") for cells, reason in rows], screen)
    fitted = [each for each in study.crossovers if each.are_fitted or each.measured]
    if fitted:
        heads = [Column("ranks")] + [Column(title.lower()) for title in CROSSOVER_TITLES[1:]]
        yield from table(heads, [Row(crossover_row(each)) for each in fitted], screen)
    yield from (f"  {printable(line)}" for line in beyond_words(study))
