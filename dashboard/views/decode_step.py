"""Decode steps of whole models: new tokens per second against batch or context, beside the bandwidth that this takes."""

import streamlit as st

from dashboard.address import choose_one
from dashboard.case import case_section, choose_case
from dashboard.compare_lines import draw_lines, say_what_is_left_out, was_measured
from dashboard.contests import side_by_side
from dashboard.empty import nothing_matches
from dashboard.listing import results_section
from dashboard.narrow import Property, asked_of, fields_of, heads_of, heads_words, narrowed, param, picked_of, rows_of
from dashboard.opening import as_asked, first_value, tells
from dashboard.rivals import devices_side_by_side
from dashboard.selection import Selection
from suite.report.curves import Quantity
from suite.report.lines import WHO, rest_of
from suite.report.lines import param as named
from suite.report.values import BANDWIDTH, SHARES, TIME, sized

TITLE = "Decode step"
ORDER = 42
JOB = "decode_step"


VALUES = {
    "tokens": Quantity("New tokens per second (tokens/s)", lambda row: row.tokens_s, ticks="~s"),
    "bandwidth": BANDWIDTH,
    "of spec": SHARES["of spec"],
    "empirical": SHARES["empirical"],
    "time": TIME,
}
ACROSS = {
    "batch": sized("batch", "Batch (sequences)"),
    "kv_len": sized("kv_len", "Context (tokens of a sequence)"),
}
SHORT = {"batch": "Batch", "kv_len": "Context"}
FIXED = (
    Property("part", "Part", param("part")),
    Property("model", "Model", param("model")),
    Property("heads", "Heads", heads_of, words=heads_words),
    Property("layers", "Layers", param("layers"), is_last=True),
)
KNOWN = ("part", "model", "num_q_heads", "num_kv_heads", "head_dim", "v_head_dim", "layers", "q_len", *ACROSS)


def render(selection: Selection) -> None:
    """Draw the page."""
    if not selection.groups:
        nothing_matches(JOB, was_measured(selection))
        return
    found = asked_of(selection)
    known = rows_of(selection, found)
    with st.container(horizontal=True):
        first = first_value(as_asked(known, fields_of(FIXED, "s_")), VALUES, "tokens")
        value = VALUES[choose_one("Show", "value", list(VALUES), lambda name: VALUES[name].title, first, follows=True)]
        along = choose_one("Against", "step_against", list(ACROSS), SHORT.__getitem__)
    (other,) = (name for name in ACROSS if name != along)
    free = Property(other, SHORT[other], param(other), alone=False)
    asked = narrowed(found, (*FIXED, free), "s_", [row for row in known if tells(row, value)])
    picked = picked_of(selection, asked)
    fields = {**WHO, other: named(other, SHORT[other].lower()), "rest": rest_of(*KNOWN)}
    rows = {device: each.rows for device, each in picked.items()}
    draw_lines(selection, rows, fields, (ACROSS[along], value), "decode-step")
    say_what_is_left_out(selection, picked)
    place = st.container()
    devices_side_by_side(selection, rows, key="decode-step")
    side_by_side((row for each in rows.values() for row in each), "decode-step", selection.whose)
    choose_case("decode-step-table", results_section(selection, "decode-step"))
    with place:
        case_section(selection)
