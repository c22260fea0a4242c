"""Attention: how fast each implementation is against the length of sequences."""

from collections.abc import Sequence

import streamlit as st

from dashboard.around import chosen_value, contests_and_results
from dashboard.compare_lines import draw_lines, say_what_is_left_out, was_measured
from dashboard.empty import nothing_matches
from dashboard.narrow import Params, Property, asked_of, fields_of, heads_of, heads_words, narrowed, param, picked_of, rows_of
from dashboard.opening import tells
from dashboard.selection import Asked, Selection
from suite.report.lines import WHO, rest_of
from suite.report.values import SHARES, VALUES, sized
from suite.rows import ResultRow

TITLE = "Attention"
ORDER = 30
JOB = "attention"
LENGTH = sized("kv_len", "Keys of a sequence (tokens)")


def mask_of(params: Params) -> str:
    """``causal``, or ``sliding_window 4096``."""
    return f"{params.get('mask', '')} {params.get('window', '')}".strip()[:60]


def tokens_of(params: Params) -> str:
    """Tokens of all sequences; empty where a file holds something else there."""
    batch, length = params.get("batch"), params.get("q_len")
    return str(batch * length) if isinstance(batch, int) and isinstance(length, int) else ""


def new_of(row: ResultRow) -> str:
    """How many queries a sequence has, where they are not as many as its keys: lines go over both together."""
    queries = row.params.get("q_len")
    return "" if queries == row.params.get("kv_len") else f"{queries} queries"


PROPERTIES = (
    Property("heads", "Heads", heads_of, words=heads_words),
    Property("direction", "Direction", param("direction")),
    Property("mask", "Mask", mask_of),
)
TOKENS = Property("tokens", "Tokens", tokens_of, alone=False)
BATCH = Property("batch", "Batch", param("batch"), alone=False)
KNOWN = ("direction", "mask", "window", "num_q_heads", "num_kv_heads", "head_dim", "v_head_dim", "batch", "q_len", "kv_len")


def render(selection: Selection) -> None:
    """Draw the page."""
    if not selection.groups:
        nothing_matches(JOB, was_measured(selection))
        return
    found = asked_of(selection)
    properties = (*PROPERTIES, size := size_of(found))
    known = rows_of(selection, found)
    value = chosen_value(known, fields_of(properties, "a_"), VALUES, "rate")
    asked = narrowed(found, properties, "a_", [row for row in known if tells(row, value)])
    picked = picked_of(selection, asked)
    rows = {device: each.rows for device, each in picked.items()}
    draw_lines(
        selection,
        rows,
        {**WHO, "size": lambda row: f"{size.title.lower()} {size.value(row.params)}", "new": new_of, "rest": rest_of(*KNOWN)},
        (LENGTH, value),
        "attention",
    )
    say_what_is_left_out(selection, picked)
    if value in SHARES.values():
        st.caption("A share of a roof compares across lengths and devices; a rate says how long one waits.")
    contests_and_results(selection, rows, "attention")


def size_of(asked: Sequence[Asked]) -> Property:
    """What stays the same along a line: the tokens of all sequences, or how many sequences there are."""
    counts = {each: len({each.value(one.params) for one in asked}) for each in (TOKENS, BATCH)}
    return TOKENS if counts[TOKENS] <= counts[BATCH] else BATCH
