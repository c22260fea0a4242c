"""Lines of several devices over a size, for pages of jobs that are about curves."""

from collections.abc import Mapping, Sequence

import streamlit as st

from dashboard.case import choose_case, clicked_row
from dashboard.figure import show
from dashboard.selection import MOST_DEVICES, Picked, Selection
from dashboard.shelf import Device
from dashboard.text import plain
from suite.report.curve_choice import strongest
from suite.report.curves import Level, Quantity, curve_figure
from suite.report.lines import Field, Member, lines_of
from suite.report.standings import SHOWN
from suite.rows import ResultRow

MOST_LINES = 16  # that one figure keeps apart


def draw_lines(
    selection: Selection,
    rows: Mapping[Device, Sequence[ResultRow]],
    fields: Mapping[str, Field],
    axes: tuple[Quantity, Quantity],
    key: str,
    levels: Sequence[Level] = (),
) -> None:
    """One figure of all devices; says where nothing can be drawn, or not everything."""
    members = [Member(selection.names[device], selection.colours[device], tuple(own)) for device, own in rows.items() if own]
    lines = lines_of(members, fields)
    across, up = axes
    drawn = strongest(lines, up, MOST_LINES)
    if len(lines) > len(drawn):
        whose = " of each device" if len(members) > 1 else ""
        st.caption(
            f"The best {len(drawn) // len(members)} lines{whose} are drawn, of {len(lines)}: choose fewer with the filters."
        )
    figure = curve_figure(drawn, across, up, levels, selection.theme)
    if figure is None:
        st.info(f"None of these results has a {up.title.split('(')[0].strip().lower()}: show another value, or clear a filter.")
        return
    devices = ", ".join(selection.names[device] for device in rows)
    clicked = show(figure, key, f"{up.title} against {across.title}, on {devices}", f"roofbench-{key}", choosing=True)
    choose_case(key, clicked_row([row for own in rows.values() for row in own], clicked))


def say_what_is_left_out(selection: Selection, picked: Mapping[Device, Picked]) -> None:
    """Devices and cases that the figures of a page do not show; what is said of several devices is said once."""
    if len(selection.devices) > len(selection.shown):
        st.caption(f"The {MOST_DEVICES} devices that were measured last are drawn: choose others in the sidebar.")
    if any(_has_several(selection, device) for device in picked):
        st.caption(SHOWN)
    notes: dict[str, list[str]] = {}
    for device, each in picked.items():
        if each.note:
            notes.setdefault(each.note, []).append(selection.names[device])
    for note, names in notes.items():
        whose = "each device" if len(names) == len(picked) and len(names) > 1 else ", ".join(names)
        st.caption(plain(f"{whose}: {note}"))


def _has_several(selection: Selection, device: Device) -> bool:
    """Whether a case of the device may have results of several runs."""
    return len({group.run for group in selection.of(device)}) > 1


def was_measured(selection: Selection) -> bool:
    """Whether the page's job has results at all: then it is the choices that leave nothing."""
    held = (shelf.held(wait_s=0) for shelf in selection.stores.shelves)
    return any(group.job == selection.job for each in held for _, group in each.pairs)
