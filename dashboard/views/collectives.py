"""Collectives: busbw and latency against the size of messages, ring against tree against the library, and where they cross."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd
import streamlit as st

from dashboard.address import choose_one
from dashboard.case import case_section, choose_case, clicked_row
from dashboard.compare_lines import draw_lines, say_what_is_left_out, was_measured
from dashboard.empty import nothing_matches
from dashboard.figure import show
from dashboard.frames import text_table
from dashboard.listing import results_section
from dashboard.narrow import Property, asked_of, choose_device, narrowed, param, picked_of, rows_of
from dashboard.opening import tells
from dashboard.selection import Asked, Picked, Selection
from dashboard.shelf import Device, Shelf
from dashboard.text import plain
from suite.collectives.cores import SHARED_CORES
from suite.collectives.marked import shared_cores_marks
from suite.collectives.series import is_without_a_link
from suite.collectives.study import Study, studies
from suite.measurement import Measurement
from suite.report.collective_figure import curves_figure, worlds_figure
from suite.report.collective_words import (
    ABOUT,
    CROSSOVER_TITLES,
    FIT_TITLES,
    NO_LINK,
    crossover_row,
    fit_lines,
    fit_row,
    setting_title,
    title_of,
)
from suite.report.lines import WHO, rest_of, switch
from suite.report.values import BANDWIDTH, TIME, sized
from suite.report.words import counted
from suite.rows import ResultRow

TITLE = "Collectives"
ORDER = 50
JOB = "collective"
KNOWN = ("op", "message_bytes", "world_size", "algo", "proto")
PROPERTIES = (
    Property("op", "Operation", param("op")),
    Property("ranks", "Ranks", param("world_size"), is_last=True),
)
SIZE = sized("message_bytes", "Message (bytes)")
NOT_SHARED = "cores not known to be shared"  # beside others that are
BUSBW = BANDWIDTH._replace(title="busbw (B/s)")


class Shelved(NamedTuple):
    """The measurements of some rows of a store, by the ids of these."""

    shelf: Shelf
    rows: Mapping[int, ResultRow]

    def measurement(self, result_id: int) -> Measurement:
        """See ``suite.collectives.marked.Source``."""
        row = self.rows[result_id]
        return self.shelf.detail(row.run, f"{row.case_key}@{row.device_slot}").measurement


def render(selection: Selection) -> None:
    """Draw the page."""
    if not selection.groups:
        nothing_matches(JOB, was_measured(selection))
        return
    found = asked_of(selection)
    told = [row for row in rows_of(selection, found) if tells(row, TIME)]
    operation = narrowed(found, PROPERTIES[:1], "c_", told, is_said=False)
    ops = {each.params.get("op") for each in operation}
    own = [row for row in told if row.params.get("op") in ops]
    asked = narrowed(operation, PROPERTIES[1:], "c_", own, is_said=False)  # the heading of the table says it
    if len(selection.devices) > 1:
        _together(selection, asked)
    device = choose_device(selection)
    # Every world, whichever is shown: a fit of fewer ranks is another fit.
    ids = [each.workload_id for each in operation if each.store == device.store]
    worlds = sorted({int(each.params["world_size"]) for each in asked if isinstance(each.params.get("world_size"), int)})
    _device(selection, device, selection.pick(device, ids, alone=True), worlds)
    place = st.container()
    choose_case("collectives-table", results_section(selection, "collectives"))
    with place:
        case_section(selection)


def _together(selection: Selection, asked: Sequence[Asked]) -> None:
    """All devices in one figure, a line for each way that any of them has."""
    st.subheader("Devices side by side")
    value = {"busbw": BUSBW, "time": TIME}[choose_one("Show", "value", ["busbw", "time"], follows=True)]
    picked = picked_of(selection, asked)
    rows = {device: each.rows for device, each in picked.items()}
    marks = {device: _marks(selection, device, own) for device, own in rows.items()}
    # By the row itself: results of two stores may have the same id.
    by_row = {id(row): marks[device].get(row.result_id, NOT_SHARED) for device, own in rows.items() for row in own}
    fields = {
        **WHO,
        "algo": switch("algo"),
        "proto": switch("proto"),
        "ranks": _ranks,
        "rest": rest_of(*KNOWN),
        "cores": lambda row: by_row[id(row)],
    }
    draw_lines(selection, rows, fields, (SIZE, value), "busbw")
    say_what_is_left_out(selection, picked)
    for device, found in marks.items():
        _say_shared(selection.names[device], found)


def _device(selection: Selection, device: Device, picked: Picked, worlds: Sequence[int]) -> None:
    """Curves of one of ``worlds``, and fits of all of them."""
    st.subheader(plain(selection.names[device]))
    marks = _marks(selection, device, picked.rows)
    found = studies(picked.rows, marks)
    if any(map(is_without_a_link, picked.rows)):
        st.info(NO_LINK)
    elif not found:
        st.info("None of these collectives has a time to draw; the table says how each ended.")
    if not found:
        return
    settings = {setting_title(study.setting): study for study in found}
    setting = settings[choose_one("Setting", "c_setting", list(settings))] if len(settings) > 1 else found[0]
    ranks = next((each for each in reversed(worlds) if each in setting.worlds), setting.worlds[-1])
    figure = curves_figure(setting, ranks, selection.theme)
    words = f"{title_of(setting, ranks)}, on {selection.names[device]}"
    if figure is not None:
        alt = f"busbw and time against message size: {words}"
        clicked = show(figure, "collectives", alt, "roofbench-collectives", choosing=True)
        choose_case("collectives", clicked_row(picked.rows, clicked))
    if picked.note:
        st.caption(picked.note)
    _say_shared(selection.names[device], marks)
    beyond = worlds_figure(setting, selection.theme)
    if beyond is not None:
        with st.expander("Worlds beyond the measured ones, modelled"):
            show(beyond, "worlds", f"Time of the largest message against ranks: {words}", "roofbench-worlds")
    _tables(setting, ranks)


def _marks(selection: Selection, device: Device, rows: Sequence[ResultRow]) -> dict[int, str]:
    """The mark of each result whose ranks shared cores, by its id."""
    shelf = selection.stores.shelves[device.store]
    return shared_cores_marks(Shelved(shelf, {row.result_id: row for row in rows}), rows)


def _say_shared(name: str, marks: Mapping[int, str]) -> None:
    """Which worlds these are, once each; nothing where every rank had a core."""
    if marks:
        worlds = ", ".join(sorted({mark.removeprefix(f"{SHARED_CORES}: ") for mark in marks.values()}))
        told = f"{counted(len(marks), 'result')} of {name} {'is' if len(marks) == 1 else 'are'} of ranks that share cores"
        st.caption(plain(f"{told} ({worlds}): their times are also of waiting for one, and no figure of a link."))


def _ranks(row: ResultRow) -> str:
    return f"{row.params.get('world_size', '')} ranks"


def _tables(study: Study, shown: int) -> None:
    crossings = [crossover_row(each) for each in study.crossovers]
    if crossings:
        st.caption("Where ring and tree cross")
        text_table(pd.DataFrame(crossings, columns=list(CROSSOVER_TITLES)), "crossings", "Where ring and tree cross")
    fits = [[*row.cells, row.reason] for row in map(fit_row, study.models)]
    if fits:
        for line in fit_lines(study, shown):
            st.caption(plain(line, 600))
        st.caption(plain(ABOUT, 1000))
        frame = pd.DataFrame(fits, columns=[*FIT_TITLES, "Remark"])
        text_table(frame, "fits", "Fits of a model to the times, with their gates")
