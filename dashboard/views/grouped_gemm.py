"""Grouped products, as experts are computed: how fast each implementation is against tokens or against groups."""

import streamlit as st

from dashboard.address import choose_one
from dashboard.around import chosen_value, contests_and_results
from dashboard.compare_lines import draw_lines, say_what_is_left_out, was_measured
from dashboard.empty import nothing_matches
from dashboard.narrow import Params, Property, asked_of, fields_of, narrowed, param, picked_of, rows_of
from dashboard.opening import tells
from dashboard.selection import Selection
from suite.report.curves import Quantity
from suite.report.lines import WHO, rest_of
from suite.report.values import SHARES, VALUES, sized
from suite.rows import ResultRow

TITLE = "Grouped GEMM"
ORDER = 25
JOB = "grouped_gemm"


def tokens_of(params: Params) -> int | None:
    """Rows of all groups together are tokens times the groups that each of them takes; ``None`` where a file has no numbers."""
    rows, taken = params.get("m"), params.get("top_k", 1)
    return rows // taken if isinstance(rows, int) and isinstance(taken, int) and taken > 0 else None


def weight_of(params: Params) -> str:
    """``6144x7168``: N and K of every group's B."""
    return "x".join(param(name)(params) for name in ("n", "k"))


def _tokens(params: Params) -> str:
    return str(tokens_of(params) or "")


def _tokens_of_row(row: ResultRow) -> float | None:
    return tokens_of(row.params)


def _taken(params: Params) -> str:
    return str(params.get("top_k", 1))[:60]


ACROSS = {
    "tokens": Quantity("Tokens (rows / groups of each)", _tokens_of_row, ticks=",d", is_power_of_two=True),
    "groups": sized("groups", "Groups (experts)"),
}
OTHERS = {
    "tokens": Property("groups", "Groups", param("groups"), alone=False),
    "groups": Property("tokens", "Tokens", _tokens, alone=False),
}
FIXED = (
    Property("weight", "Weights of a group", weight_of),
    Property("spread", "Rows of groups", param("spread")),
    Property("top_k", "Groups of each token", _taken),
    Property("alignment", "Filled up to a multiple of", param("alignment")),
)
KNOWN = ("groups", "m", "n", "k", "spread", "top_k", "alignment")


def render(selection: Selection) -> None:
    """Draw the page."""
    if not selection.groups:
        nothing_matches(JOB, was_measured(selection))
        return
    found = asked_of(selection)
    known = rows_of(selection, found)
    with st.container(horizontal=True):
        value = chosen_value(known, fields_of(FIXED, "g_"), VALUES, "rate")
        along = choose_one("Against", "grouped_against", [*ACROSS], str.capitalize)
    other = OTHERS[along]
    asked = narrowed(found, (*FIXED, other), "g_", [row for row in known if tells(row, value)])
    picked = picked_of(selection, asked)
    rows = {device: each.rows for device, each in picked.items()}
    fields = {**WHO, other.name: lambda row: f"{other.value(row.params)} {other.name}", "rest": rest_of(*KNOWN)}
    draw_lines(selection, rows, fields, (ACROSS[along], value), "grouped-gemm")
    say_what_is_left_out(selection, picked)
    if value in SHARES.values():
        st.caption("A share of a roof compares across sizes and devices; a rate says how long one waits.")
    contests_and_results(selection, rows, "grouped-gemm")
