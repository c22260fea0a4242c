"""A comparison as Markdown, for a comment on a change: what is not the same first, the rest folded away.

It may be published: folders, addresses and credentials in what the store says are masked, as a report does it.
"""

from collections.abc import Iterable, Iterator, Sequence

from suite.compare import words
from suite.compare.comparison import Compared, Comparison
from suite.compare.verdict import Verdict
from suite.report.markdown import _table, _text
from suite.report.privacy import Scrubber
from suite.report.words import counted, duration

# A comment on GitHub holds 65,536 characters; a row takes about 250.
ROWS_AT_MOST = 100
LISTED_AT_MOST = 30
TITLES = ("Verdict", "Case", "B/A", "95 % interval", "delta", "A", "B", "In", "Remarks")
_SCRUBBER = Scrubber()


def render_markdown(comparison: Comparison) -> str:
    """GitHub-flavoured Markdown; text from a store is escaped, so that it stays text."""
    return "\n\n".join(_blocks(comparison)) + "\n"


def _blocks(comparison: Comparison) -> Iterator[str]:
    yield f"### roofbench: {_clean(words.summary(comparison))}"
    runs = f"B, run {comparison.b.run}, against A, run {comparison.a.run}, {words.joined_by(comparison)}."
    yield _clean(runs)
    same = [case for case in comparison.cases if case.verdict is Verdict.SAME]
    other = [case for case in comparison.cases if case.verdict is not Verdict.SAME]
    if other:
        yield from _cases(other, comparison.has_several_backends)
    if same:
        yield from _folded(f"{counted(len(same), 'case')} SAME", _cases(same, comparison.has_several_backends))
    if comparison.uncompared:
        yield from _folded(f"{counted(len(comparison.uncompared), 'case')} not compared", _uncompared(comparison))
    if comparison.differing:
        found = words.differences(comparison)
        rows = [(words.name(each), each.a, each.b, each.where) for each in found.each]
        rows += [(why, ", ".join(names), "", "") for why, names in found.recorded.items()]
        yield from _folded("What differed", [_table(("", "A", "B", ""), _cleaned(rows))])
    yield "\n".join(f"- {_clean(sentence.replace('`', ''))}" for sentence in words.meaning(comparison))


def _cases(cases: Sequence[Compared], with_backend: bool) -> Iterator[str]:
    yield _table(TITLES, _cleaned(_row(case, with_backend) for case in cases[:ROWS_AT_MOST]))
    if len(cases) > ROWS_AT_MOST:
        yield f"and {len(cases) - ROWS_AT_MOST} more"


def _row(case: Compared, with_backend: bool) -> Sequence[str]:
    return (
        case.verdict.value,
        words.title(case, with_backend),
        words.ratio(case.ratio),
        words.ratios(case),
        words.within(case.gap.delta),
        duration(case.pair.a.row.p50_s),
        duration(case.pair.b.row.p50_s),
        "cycles" if case.in_cycles else "time",
        "; ".join(words.remarks(case)),
    )


def _uncompared(comparison: Comparison) -> Iterator[str]:
    for why, titles in words.uncompared(comparison):
        more = f", and {len(titles) - LISTED_AT_MOST} more" if len(titles) > LISTED_AT_MOST else ""
        yield f"- {_clean(why)}: {_clean('; '.join(titles[:LISTED_AT_MOST]))}{more}"


def _folded(title: str, blocks: Iterable[str]) -> Iterator[str]:
    yield f"<details><summary>{title}</summary>"
    yield from blocks
    yield "</details>"


def _cleaned(rows: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    return ([_SCRUBBER.text(cell) for cell in row] for row in rows)


def _clean(text: str) -> str:
    return _text(_SCRUBBER.text(text))
