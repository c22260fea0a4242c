"""Devices under their roofs: rate against arithmetic intensity, with the ceilings that a person chooses."""

from collections.abc import Sequence

import streamlit as st

from dashboard.address import choose
from dashboard.case import case_section, choose_case, clicked_row
from dashboard.compare_lines import say_what_is_left_out
from dashboard.empty import nothing_matches
from dashboard.figure import show
from dashboard.listing import results_section
from dashboard.roofs import roofs_of, several_sheets, sheet_lines
from dashboard.selection import Picked, Selection
from dashboard.shelf import Device
from dashboard.text import plain
from suite.report.figures import roofline_figure
from suite.report.overlay import Seat, overlay_figure
from suite.report.roofs import KINDS, drawable

TITLE = "Roofline"
ORDER = 10
CEILINGS = {
    "spec": "Spec sheet",
    "boost": "At the maximum clock",
    "at clock": "At the measured clock",
    "empirical": "Empirical",
}


def render(selection: Selection) -> None:
    """Draw the page."""
    if not selection.groups:
        nothing_matches("", True)
        return
    first = ("spec", "empirical") if len(selection.shown) == 1 else ("spec",)
    kinds = choose("Ceilings", "ceiling", list(KINDS), CEILINGS.__getitem__, default=first, empty="No roofs")
    picked = {device: selection.pick(device) for device in selection.shown}
    picked = {device: each for device, each in picked.items() if any(map(drawable, each.rows))}
    if not picked:
        st.info("None of these results does arithmetic and moves data: the roofline has no point to show.")
    elif len(picked) == 1:
        _one(selection, *next(iter(picked.items())), kinds)
    else:
        _several(selection, picked, kinds)
    place = st.container()
    choose_case("roofline-table", results_section(selection, "roofline"))
    with place:
        case_section(selection)


def _one(selection: Selection, device: Device, picked: Picked, kinds: Sequence[str]) -> None:
    """Of one device colours are formats'."""
    st.caption(sheet_lines(selection, device, picked.rows))
    figure = roofline_figure(picked.rows, roofs_of(selection, device, picked.rows).only(kinds), selection.theme)
    alt = f"Roofline of {selection.names[device]}: rate against arithmetic intensity"
    clicked = show(figure, "roofline", alt, "roofbench-roofline", choosing=True)
    choose_case("roofline", clicked_row(picked.rows, clicked))
    say_what_is_left_out(selection, {device: picked})


def _several(selection: Selection, picked: dict[Device, Picked], kinds: Sequence[str]) -> None:
    """Of several devices colours are the devices'."""
    seats = [
        Seat(
            selection.names[device],
            selection.colours[device],
            each.rows,
            roofs_of(selection, device, each.rows).only(kinds),
        )
        for device, each in picked.items()
    ]
    figure = overlay_figure(seats, selection.theme)
    alt = f"Rooflines of {', '.join(selection.names[device] for device in picked)}: rate against arithmetic intensity"
    clicked = show(figure, "rooflines", alt, "roofbench-rooflines", choosing=True)
    choose_case("rooflines", clicked_row([row for seat in seats for row in seat.rows], clicked))
    for device, each in picked.items():
        if said := several_sheets(selection, device, each.rows):
            st.caption(plain(f"{selection.names[device]}: {said}"))
    say_what_is_left_out(selection, picked)
