"""Implementations side by side in the terminal: one line for each case that several ways have computed."""

import textwrap
from collections.abc import Iterator, Sequence

from suite.report.contest import TITLE, contests
from suite.report.printable import clipped, printable
from suite.rows import ResultRow
from suite.show.screen import Screen

MOST_LINES = 20  # cases; the report has them all
_LENGTH = 300


def contest_lines(rows: Sequence[ResultRow], screen: Screen) -> Iterator[str]:
    """A heading and the verdicts; nothing where no case was computed in two ways."""
    found = contests(rows)
    if not found:
        return
    several = len({contest.first.device_uid for contest in found}) > 1
    yield ""
    yield screen.paint(TITLE.lower(), "bold")
    for contest in found[:MOST_LINES]:
        on = f" on device {contest.first.device_slot}" if several else ""
        said = clipped(printable(f"{contest.title}{on}: {contest.verdict}"), _LENGTH)
        yield from textwrap.wrap(said, screen.width or _LENGTH + 2, initial_indent="  ", subsequent_indent="    ")
    if len(found) > MOST_LINES:
        yield f"  and {len(found) - MOST_LINES} smaller cases: `roofbench report` has them"
