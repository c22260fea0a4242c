"""The first thing a report says: how close each format came to its roof."""

from collections.abc import Sequence
from typing import NamedTuple

from suite.outcome import Evidence
from suite.report.roofs import drawable
from suite.rows import ResultRow


class Headline(NamedTuple):
    """The best result of one format: ``best`` of ``of`` verified cases of one regime."""

    format: str
    best: ResultRow
    of: int


def headlines(rows: Sequence[ResultRow]) -> tuple[Headline, ...]:
    """One headline a format, best fraction of spec first.

    Regimes are not mixed: a format is judged in the hardest regime it was measured in (cold, sustained, device time
    first).  Only measured results count.  Without a spec sheet the fraction is unknown and the rate decides.
    """
    measured = [row for row in rows if drawable(row) and row.evidence == Evidence.MEASURED]
    found = [_headline(name, [row for row in measured if row.format == name]) for name in sorted({r.format for r in measured})]
    return tuple(sorted(found, key=lambda headline: _merit(headline.best), reverse=True))


def _headline(name: str, rows: Sequence[ResultRow]) -> Headline:
    hardest = min(_ease(row) for row in rows)
    same = [row for row in rows if _ease(row) == hardest]
    return Headline(name, max(same, key=_merit), len(same))


def _ease(row: ResultRow) -> tuple[bool, bool, bool]:
    return row.cache != "cold", row.load != "sustained", row.dispatch != "device"


def _merit(row: ResultRow) -> tuple[float, float]:
    spec = row.fractions.spec
    return (-1.0 if spec is None else spec), row.flop_s or 0.0
