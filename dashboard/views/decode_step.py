"""Decode steps of whole models: new tokens per second against batch or context, beside the bandwidth that this takes."""

import streamlit as st

from dashboard.address import choose_one
from dashboard.around import chosen_value, contests_and_results
from dashboard.compare_lines import draw_lines, say_what_is_left_out, was_measured
from dashboard.empty import nothing_matches
from dashboard.narrow import Property, asked_of, fields_of, heads_of, heads_words, narrowed, param, picked_of, rows_of
from dashboard.opening import tells
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
        value = chosen_value(known, fields_of(FIXED, "s_"), VALUES, "tokens")
        along = choose_one("Against", "step_against", list(ACROSS), SHORT.__getitem__)
    (other,) = (name for name in ACROSS if name != along)
    free = Property(other, SHORT[other], param(other), alone=False)
    asked = narrowed(found, (*FIXED, free), "s_", [row for row in known if tells(row, value)])
    picked = picked_of(selection, asked)
    fields = {**WHO, other: named(other, SHORT[other].lower()), "rest": rest_of(*KNOWN)}
    rows = {device: each.rows for device, each in picked.items()}
    draw_lines(selection, rows, fields, (ACROSS[along], value), "decode-step")
    say_what_is_left_out(selection, picked)
    contests_and_results(selection, rows, "decode-step")
