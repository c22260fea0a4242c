"""Why cells of a heat map are in doubt or without a result, in words under it: a hover is none on a telephone or for keys."""

from collections.abc import Mapping

import streamlit as st

from dashboard.text import plain
from suite.outcome import Outcome
from suite.report.heat import DOUBT, FAILED
from suite.report.hover import explained
from suite.report.method import OUTCOMES
from suite.report.roofs import DOUBTS
from suite.report.words import marks
from suite.rows import ResultRow

Place = tuple[str, str]  # the name of a cell's row, empty where there is one only, and of the cell in it
MOST_NAMED = 8  # cells of one reason; a map of many devices has hundreds


def whys(cells: Mapping[Place, ResultRow]) -> None:
    """A line for each reason with the cells that it is the reason of; nothing where all are clean."""
    if lines := lines_of(cells):
        st.caption("  \n".join(plain(line, 1000) for line in lines))


def lines_of(cells: Mapping[Place, ResultRow]) -> list[str]:
    """``? not converged (the interval ...): gemm bf16, gemm fp16 and 3 more``; failures last, both as the map marks them."""
    doubts: dict[str, list[Place]] = {mark: [] for mark in DOUBTS}
    failures: dict[str, list[Place]] = {}
    for name, row in cells.items():
        if row.outcome != Outcome.OK:
            failures.setdefault(row.outcome, []).append(name)
            continue
        for mark in marks(row):
            if found := next((each for each in DOUBTS if mark.startswith(each)), None):
                doubts[found].append(name)
    told = [f"{DOUBT} {_meaning(mark)}: {_named(names)}" for mark, names in doubts.items() if names]
    return told + [f"{FAILED} {_ending(outcome)}: {_named(names)}" for outcome, names in failures.items()]


def _meaning(mark: str) -> str:
    return explained(mark).removeprefix("± ").replace(": ", " (", 1) + ")"


def _ending(outcome: str) -> str:
    meaning = OUTCOMES.get(outcome, "")
    return outcome.replace("_", " ") + (f" ({meaning})" if meaning else "")


def _named(places: list[Place]) -> str:
    rows: dict[str, list[str]] = {}
    for row, name in places[:MOST_NAMED]:
        rows.setdefault(row, []).append(name)
    told = "; ".join(f"{row}: {', '.join(names)}" if row else ", ".join(names) for row, names in rows.items())
    return told + (f" and {len(places) - MOST_NAMED:,} more" if len(places) > MOST_NAMED else "")
