"""Implementations side by side: which of several ways to compute a case is fastest, a line a case."""

from collections.abc import Iterable
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.frames import frame_with_downloads
from dashboard.text import plain
from suite.report.contest import ABOUT, TITLE, Contest, contests, untold
from suite.report.printable import clipped, printable
from suite.report.words import counted
from suite.rows import ResultRow

MOST_LINES = 500  # the largest cases; filters reach the others
_CHARACTERS = 300


def side_by_side(rows: Iterable[ResultRow], key: str) -> None:
    """Draw the cases among ``rows`` that were computed in several ways; nothing where there are none."""
    found = contests(rows)
    if not found:
        return
    st.subheader(TITLE)
    st.caption(ABOUT)
    frame = pd.DataFrame([_line(contest) for contest in found[:MOST_LINES]]).dropna(axis="columns", how="all")
    if frame["Device"].nunique() == 1:
        frame = frame.drop(columns="Device")
    frame_with_downloads(frame, f"{key}-contests", f"Fastest implementation of {counted(len(frame), 'case')}", _columns())
    if len(found) > MOST_LINES:
        st.caption(plain(f"{len(found) - MOST_LINES} smaller cases are not shown: choose fewer with the filters."))


def _line(contest: Contest) -> dict[str, Any]:
    behind, lead = contest.next, contest.lead
    low, high = lead.interval if lead and lead.interval else (None, None)
    return {
        "Case": _text(contest.title),
        "Fastest": _text(contest.leaders),
        "Rate": contest.ways[0].rate,
        "Next": _text(f"in doubt: {behind.name}" if untold(behind.row) else behind.name) if behind else None,
        "Over next": lead.times if lead else None,
        "From": low,
        "To": high,
        "Marks": _text(contest.ways[0].marks) or None,
        "Every way": _text("; ".join(f"{way.name} {way.time}" for way in contest.ways)),
        "Not timed": _text("; ".join(contest.untimed)) or None,
        "Device": _text(contest.device),
    }


def _text(text: str) -> str:
    return clipped(printable(text), _CHARACTERS)


def _columns() -> dict[str, Any]:
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    return {
        "Case": text(pinned=True, help="Sizes, format and regime"),
        "Fastest": text(help="Implementation and backend; several where their intervals do not tell them apart"),
        "Rate": text(help="Useful operations per second, or compulsory bytes where there is no arithmetic"),
        "Next": text(help="The fastest of those that it is told apart from"),
        "Over next": number(format="%.3g", help="How many times as fast as the next"),
        "From": number(format="%.3g", help="Lower end of the 95 % interval of that"),
        "To": number(format="%.3g", help="Upper end of that interval"),
        "Marks": text(help="What to know before trusting the fastest one's number"),
        "Every way": text(help="Median of one launch and half the width of its 95 % interval"),
    }
