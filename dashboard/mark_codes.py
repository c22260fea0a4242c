"""Marks as letters, with the words that they stand for over the table: four marks in words are as wide as five columns."""

from collections.abc import Iterable

import streamlit as st

from dashboard.text import plain
from suite.report.derived import ABOVE_DERIVED
from suite.report.words import CONTENDED, marks
from suite.rows import ResultRow

HELP = "What to know before trusting the figures: the letters stand over the table, Remarks say more"
# By the beginning of a mark: its letter, and what it is called.
_CODES = {
    "± not resolved": ("R", "not resolved"),
    "one sample": ("I", "no interval"),
    "no interval": ("I", "no interval"),
    "not converged": ("C", "not converged"),
    "in cycles": ("Y", "known better in cycles"),
    "not steady": ("S", "not steady"),
    CONTENDED: ("O", "contended: others used the device"),
    "throttled": ("T", "throttled"),
    ABOVE_DERIVED: ("D", ABOVE_DERIVED),
    "emulated": ("E", "emulated"),
    "simulated": ("M", "simulated"),
    "imported": ("P", "imported"),
}
_OTHER = ("*", "see Remarks")  # of a newer version's store


def codes(row: ResultRow) -> str | None:
    """``RCO``, in the order of ``marks``; ``None`` of a clean result, which a table shows as it does what is missing."""
    return "".join(dict.fromkeys(_code(mark)[0] for mark in marks(row))) or None


def legend(rows: Iterable[ResultRow]) -> None:
    """What the letters of these rows mean, in one line; nothing where all are clean."""
    found = {_code(mark) for row in rows for mark in marks(row)}
    known = [each for each in dict.fromkeys([*_CODES.values(), _OTHER]) if each in found]
    if known:
        st.caption(plain("Marks: " + ", ".join(f"{letter} {words}" for letter, words in known) + ".", 600))


def _code(mark: str) -> tuple[str, str]:
    return next((code for beginning, code in _CODES.items() if mark.startswith(beginning)), _OTHER)
