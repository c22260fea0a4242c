"""The first thing a report says: how close each format came to its roof."""

from collections.abc import Sequence
from typing import NamedTuple

from suite.outcome import Evidence
from suite.report.roofs import drawable
from suite.report.words import doubtful, resolved
from suite.rows import ResultRow


class Headline(NamedTuple):
    """The best result of one format (its label), which names its regime, among ``of`` verified ones."""

    format: str
    best: ResultRow
    of: int


def headlines(rows: Sequence[ResultRow]) -> tuple[Headline, ...]:
    """One headline a format with its scaling, best fraction of spec first.

    Only measured results count, of any regime.  One whose median is not resolved, or has no interval, is a headline only where
    no other is; then one whose share of spec is known comes before one of which only the rate is, and one in doubt last.
    """
    measured = [row for row in rows if drawable(row) and row.evidence == Evidence.MEASURED]
    labels = sorted({row.format_label for row in measured})
    found = [_headline(label, [row for row in measured if row.format_label == label]) for label in labels]
    return tuple(sorted(found, key=lambda headline: _merit(headline.best), reverse=True))


def _headline(name: str, rows: Sequence[ResultRow]) -> Headline:
    best = max(rows, key=lambda row: (resolved(row), row.fractions.spec is not None, not doubtful(row), *_merit(row)))
    return Headline(name, best, len(rows))


def _merit(row: ResultRow) -> tuple[float, float]:
    spec = row.fractions.spec
    return (-1.0 if spec is None else spec), row.flop_s or 0.0
