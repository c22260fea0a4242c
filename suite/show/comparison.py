"""A comparison of two runs as a terminal shows it: verdicts, the worst first, what differed, what was not compared."""

import textwrap
from collections.abc import Iterator

from suite.compare import words
from suite.compare.comparison import Compared, Comparison
from suite.compare.verdict import Verdict
from suite.report.printable import clipped, printable
from suite.report.words import duration
from suite.show.screen import Screen
from suite.show.table import Column, Row, table

_NO_BREAK = "\u00a0"
WIDTH = 80  # without a terminal, whose width is known: a log is read at that
COLUMNS = (
    Column("verdict"),
    Column("B/A", right=True),
    Column("95 % interval", right=True),
    Column("delta", rank=1, right=True),
    Column("A", rank=3, right=True),
    Column("B", rank=2, right=True),
    Column("in", rank=4),
)
STYLES = {Verdict.SLOWER: "red", Verdict.UNDECIDED: "yellow", Verdict.SAME: "", Verdict.FASTER: "green"}
LISTED_AT_MOST = 10  # cases under one reason; all of them are in --json


def comparison_lines(comparison: Comparison, screen: Screen) -> Iterator[str]:
    """The whole answer of ``roofbench compare``; the last line is the summary."""
    screen = screen._replace(width=screen.width or WIDTH)
    yield from _header(comparison, screen)
    if comparison.differing:
        yield from _section("what differed", screen)
        found = words.differences(comparison)
        for each in found.each:
            yield from _wrapped(f"{words.name(each)}: {words.values(each)}", screen)
        for why, names in found.recorded.items():
            yield from _wrapped(f"{why}: {', '.join(names)}", screen)
    if comparison.cases:
        yield from _section("verdicts, the worst first", screen)
        with_backend = comparison.has_several_backends
        yield from table(COLUMNS, [_row(case, with_backend) for case in comparison.cases], screen)
    if comparison.uncompared:
        yield from _section("not compared", screen)
        for why, titles in words.uncompared(comparison):
            yield from _wrapped(f"{why}:", screen)
            yield from _listed(titles, screen)
    if comparison.cases:
        yield ""
        for sentence in words.meaning(comparison):
            yield from _wrapped(sentence, screen, indent="")
        yield screen.paint(words.summary(comparison), "bold")


def _header(comparison: Comparison, screen: Screen) -> Iterator[str]:
    for name, run in (("A", comparison.a), ("B", comparison.b)):
        note = f", note: {clipped(printable(run.note))}" if run.note else ""
        about = (
            f"{printable(run.experiment)} {printable(run.status)}, started {run.started_at[:16].replace('T', ' ')} UTC{note}"
        )
        yield from _wrapped(f"{name}  run {printable(run.run)}  {about.strip()}", screen, indent="")
    yield from _wrapped(words.joined_by(comparison), screen, indent="")


def _row(case: Compared, with_backend: bool) -> Row:
    cells = (
        case.verdict.value,
        words.ratio(case.ratio),
        words.ratios(case),
        words.within(case.gap.delta),
        duration(case.pair.a.row.p50_s),
        duration(case.pair.b.row.p50_s),
        "cycles" if case.in_cycles else "time",
    )
    remark = "; ".join([words.title(case, with_backend), *words.remarks(case)])
    return Row(cells, remark, STYLES[case.verdict])


def _listed(titles: list[str], screen: Screen) -> Iterator[str]:
    for title in titles[:LISTED_AT_MOST]:
        yield from _wrapped(title, screen, indent="    ")
    if len(titles) > LISTED_AT_MOST:
        yield f"    and {len(titles) - LISTED_AT_MOST} more"


def _section(title: str, screen: Screen) -> Iterator[str]:
    yield ""
    yield screen.paint(title, "bold")


def _wrapped(text: str, screen: Screen, indent: str = "  ") -> Iterator[str]:
    """A percentage is not torn from its sign."""
    held = printable(text).replace(" %", f"{_NO_BREAK}%")
    for line in textwrap.wrap(held, screen.width or WIDTH, initial_indent=indent, subsequent_indent=indent + "  "):
        yield line.replace(_NO_BREAK, " ")
