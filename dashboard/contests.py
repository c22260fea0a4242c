"""Implementations side by side: which of several ways to compute a case is fastest, a line a case."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.frames import TIMES, frame_with_downloads
from dashboard.mark_codes import HELP, codes, legend
from dashboard.text import plain
from suite.report.contest import ABOUT, TITLE, Contest, contests, untold
from suite.report.printable import clipped, printable
from suite.report.words import counted
from suite.rows import ResultRow

MOST_LINES = 500  # the largest cases; filters reach the others
_CHARACTERS = 300
_NAMED = 2  # words of a title, the job and its first sizes, that are always there


def side_by_side(rows: Iterable[ResultRow], key: str, whose: Callable[[ResultRow], str]) -> None:
    """Draw the cases among ``rows`` that were computed in several ways; nothing where there are none.

    ``whose`` is what the device of a row is called on the page.
    """
    found = contests(rows)
    if not found:
        return
    st.subheader(TITLE)
    st.caption(ABOUT)
    titles, shared = short_titles([contest.title for contest in found[:MOST_LINES]])
    if shared:
        st.caption(plain(f"The same in all of them: {shared}."))
    lines = [_line(contest, title, whose(contest.first)) for contest, title in zip(found, titles, strict=False)]
    frame = pd.DataFrame(lines).dropna(axis="columns", how="all")
    if frame["Device"].nunique() == 1:
        frame = frame.drop(columns="Device")
    legend(contest.first for contest in found[:MOST_LINES])
    frame_with_downloads(frame, f"{key}-contests", f"Fastest implementation of {counted(len(frame), 'case')}", _columns())
    if len(found) > MOST_LINES:
        st.caption(plain(f"{len(found) - MOST_LINES} smaller cases are not shown: choose fewer with the filters."))


def short_titles(titles: Sequence[str]) -> tuple[list[str], str]:
    """Titles without the settings, formats and regimes that all of them have, and these: what tells them apart comes first."""
    words = [re.split(r",? ", title) for title in titles]
    common = set.intersection(*map(set, words)) if len(words) > 1 else set()
    said = [word for word in words[0][_NAMED:] if word in common] if words else []
    return [" ".join(word for at, word in enumerate(each) if at < _NAMED or word not in said) for each in words], ", ".join(
        said
    )


def _line(contest: Contest, title: str, device: str) -> dict[str, Any]:
    behind, lead = contest.next, contest.lead
    low, high = lead.interval if lead and lead.interval else (None, None)
    return {
        "Case": cell_text(title),
        "Device": cell_text(device),
        "Fastest": cell_text(contest.leaders),
        "Marks": codes(contest.first),
        "Rate": contest.ways[0].rate,
        "Next": cell_text(f"in doubt: {behind.name}" if untold(behind.row) else behind.name) if behind else None,
        "Over next": lead.times if lead else None,
        "From": low,
        "To": high,
        "Every way": cell_text("; ".join(f"{way.name} {way.time}" for way in contest.ways)),
        "Not timed": cell_text("; ".join(contest.untimed)) or None,
        "Remarks": cell_text(contest.ways[0].marks) or None,
    }


def cell_text(text: str) -> str:
    """What a file holds, as a table of cases shows it."""
    return clipped(printable(text), _CHARACTERS)


def lead_columns() -> dict[str, Any]:
    """Of how far the fastest is ahead, and what to know of its number."""
    number = st.column_config.NumberColumn
    return {
        "Over next": number(format=TIMES, help="How many times as fast as the next"),
        "From": number(
            format=TIMES, help="Lower end of the 95 % interval of that; of several that lead, of one that holds for each"
        ),
        "To": number(format=TIMES, help="Upper end of that interval"),
        "Marks": st.column_config.TextColumn(help=HELP),
        "Remarks": st.column_config.TextColumn(help="What to know before trusting the fastest one's number"),
    }


def _columns() -> dict[str, Any]:
    text = st.column_config.TextColumn
    return {
        "Case": text(pinned=True, help="Sizes, format and regime"),
        "Fastest": text(help="Implementation and backend; several where their intervals do not tell them apart"),
        "Rate": text(help="Useful operations per second, or compulsory bytes where there is no arithmetic"),
        "Next": text(help="The fastest of those that it is told apart from"),
        **lead_columns(),
        "Every way": text(help="Median of one launch and half the width of its 95 % interval"),
    }
