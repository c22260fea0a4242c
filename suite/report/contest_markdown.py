"""Implementations side by side in a Markdown report: a verdict for each case, and a table for the largest."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from suite.report.contest import ABOUT, TITLE, Contest
from suite.report.contest_columns import COLUMNS

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]
Text = Callable[[str], str]
MOST_TABLES = 12  # of the largest cases: the verdicts above them are of all


def contest_blocks(found: Sequence[Contest], several_devices: bool, table: Table, text: Text) -> Iterator[str]:
    """Blocks of Markdown; ``table`` and ``text`` are the report's: they escape cells and words."""
    if not found:
        return
    yield f"## {TITLE}"
    yield text(ABOUT)
    yield table(("Case", "Verdict"), ((contest.titled(several_devices), contest.verdict) for contest in found))
    for contest in found[:MOST_TABLES]:
        yield f"### {text(contest.titled(several_devices))}"
        cells = ([column.text(way) for column in COLUMNS] for way in contest.ways)
        yield table(tuple(column.title for column in COLUMNS), cells)
        if contest.untimed:
            yield text(f"Not timed: {'; '.join(contest.untimed)}.")
