"""Decoding over a paged cache: bandwidth against context, batch and page size, beside what the memory can do."""

import streamlit as st

from dashboard.address import choose_one
from dashboard.around import chosen_value, contests_and_results
from dashboard.compare_lines import draw_lines, say_what_is_left_out, was_measured
from dashboard.empty import nothing_matches
from dashboard.narrow import Property, asked_of, fields_of, heads_of, heads_words, narrowed, param, picked_of, rows_of
from dashboard.opening import tells
from dashboard.roofs import bandwidths_of
from dashboard.selection import Picked, Selection
from dashboard.shelf import Device
from suite.report.curve_choice import levels_of
from suite.report.curves import Level, Quantity
from suite.report.lines import WHO, rest_of
from suite.report.lines import param as named
from suite.report.values import BANDWIDTH, SHARES, TIME, sized
from suite.report.words import si

TITLE = "Decode"
ORDER = 40
JOB = "decode"
ACROSS = {
    "kv_len": sized("kv_len", "Context (tokens of a sequence)"),
    "batch": sized("batch", "Batch (sequences)"),
    "page_size": sized("page_size", "Page (tokens)"),
}
SHORT = {"kv_len": "Context", "batch": "Batch", "page_size": "Page size"}
VALUES = {"bandwidth": BANDWIDTH, "of spec": SHARES["of spec"], "empirical": SHARES["empirical"], "time": TIME}
FIXED = (
    Property("heads", "Heads", heads_of, words=heads_words),
    Property("q_len", "New tokens", param("q_len")),
    Property("lengths", "Lengths", param("lengths")),
    Property("order", "Pages lie", param("page_order")),
    Property("prefix", "Shared prefix", param("shared_prefix")),
)
KNOWN = ("num_q_heads", "num_kv_heads", "head_dim", "v_head_dim", "q_len", "lengths", "page_order", "shared_prefix", *ACROSS)


def render(selection: Selection) -> None:
    """Draw the page."""
    if not selection.groups:
        nothing_matches(JOB, was_measured(selection))
        return
    found = asked_of(selection)
    with st.container(horizontal=True):
        known = rows_of(selection, found)
        value = chosen_value(known, fields_of(FIXED, "d_"), VALUES, "bandwidth")
        along = choose_one("Against", "against", list(ACROSS), SHORT.__getitem__)
    others = [name for name in ACROSS if name != along]
    free = [Property(name, SHORT[name], param(name), alone=False) for name in others]
    asked = narrowed(found, (*FIXED, *free), "d_", [row for row in known if tells(row, value)])
    picked = picked_of(selection, asked)
    fields = {**WHO, **{name: named(name, SHORT[name].lower()) for name in others}, "rest": rest_of(*KNOWN)}
    rows = {device: each.rows for device, each in picked.items()}
    draw_lines(selection, rows, fields, (ACROSS[along], value), "decode", _levels(selection, picked, value))
    say_what_is_left_out(selection, picked)
    contests_and_results(selection, rows, "decode")


def _levels(selection: Selection, picked: dict[Device, Picked], value: Quantity) -> list[Level]:
    """What memory can do: by the sheet, and as a read, copy or triad was measured."""
    if value is not BANDWIDTH:
        return []
    found: list[tuple[str, str, float, str]] = []
    for device, each in picked.items():
        for kind, bytes_s in bandwidths_of(selection, device, each.rows).items():
            told = f"{kind} {si(bytes_s, 'B/s')}"
            found.append((selection.names[device], told, bytes_s, "solid" if kind.startswith("spec") else "dash"))
    return levels_of(found)
