"""Devices side by side: how close each came to its roof in every job and format, what that took, and how fresh it is."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.address import choose_one
from dashboard.cards import cards
from dashboard.case import case_section, choose_case, clicked_row
from dashboard.empty import nothing_matches
from dashboard.figure import show
from dashboard.frames import SHARE, frame_with_downloads
from dashboard.listing import results_section
from dashboard.mark_codes import HELP, codes, legend
from dashboard.opening import first_value
from dashboard.roofs import roofs_of, sheet_lines
from dashboard.selection import Selection
from dashboard.shelf import Device
from dashboard.text import plain
from dashboard.whys import whys
from suite.report.columns import outcome
from suite.report.figures import roofline_figure
from suite.report.headlines import headlines
from suite.report.heat import heat_figure
from suite.report.standings import SHOWN, Column, best_groups, best_rate, in_order, standings_map
from suite.report.values import SHARES
from suite.report.words import case_detail, counted, giga_per_joule, marks, moment, si
from suite.rows import ResultRow

TITLE = "Overview"
ORDER = 0
MOST_DOWN, MOST_ACROSS = 60, 24
MOST_PINNED = 24  # characters of a name that does not scroll away: a longer one would leave a telephone no room for others
_EMPTY_LEFT_OUT = ("Marks", "Outcome", "At clock", "W", "Clock")

Line = tuple[Device, str]  # a device under one kind of evidence: kinds never share a line
Best = Mapping[tuple[Line, Column], ResultRow]


def render(selection: Selection) -> None:
    """Draw the page."""
    if not selection.groups:
        nothing_matches(selection.job, bool(selection.stores.runs))
        return
    st.caption(plain(_summary(selection)))
    best = _best(selection)
    order = {device: place for place, device in enumerate(selection.names)}
    lines = sorted({line for line, _ in best}, key=lambda line: (order[line[0]], line[1]))
    place = _standings(selection, best, lines)
    if len(selection.devices) == 1 and not selection.missing:
        _device(selection, selection.devices[0])
    if len(lines) > 1:
        _table(selection, best, lines)
    chosen = results_section(selection, "overview")
    choose_case("overview-table", chosen)
    with place:
        case_section(selection)


def _summary(selection: Selection) -> str:
    runs = {(device.store, group.run) for device, group in selection.groups}
    newest = next((run.entry for run in selection.stores.runs if (run.store, run.entry.run) in runs), None)
    last = f", the newest of {moment(newest.finished_at or newest.started_at)}" if newest else ""
    shown = (_devices(selection), counted(selection.results, "result"), counted(len(runs), "run"))
    return (
        f"{shown[0]}, {shown[1]} in {shown[2]}{last}. Each cell is the best verified result of a device in a job and format, "
        "of all the runs shown; a contended one, or one that is not resolved, only where there is no other."
    )


def _devices(selection: Selection) -> str:
    """One chip is one device, however many stores have results of it."""
    chips, stores = {device.uid for device in selection.devices}, {device.store for device in selection.devices}
    several = f" in {counted(len(stores), 'store')}" if len(selection.devices) > len(chips) else ""
    return f"{counted(len(chips), 'device')}{several}"


def _best(selection: Selection) -> Best:
    chosen = best_groups(selection.groups)
    rows: dict[tuple[Line, Column], ResultRow] = {}
    for store, shelf in enumerate(selection.stores.shelves):
        wanted = {place: group.best for place, group in chosen.items() if place[0].store == store}
        found = {row.result_id: row for row in shelf.rows(sorted(set(wanted.values())))}
        rows |= {
            ((device, kind), column): found[number] for (device, kind, column), number in wanted.items() if number in found
        }
    return rows


def _standings(selection: Selection, best: Best, lines: Sequence[Line]) -> Any:
    """The heat map; gives back the place for the case that is chosen in it."""
    columns = in_order(column for _, column in best)
    shown = st.columns([0.35, 0.65])[0]
    with shown:
        first = first_value(list(best.values()), SHARES, "of spec")
        share = choose_one("Show", "share", list(SHARES), lambda name: SHARES[name].title, first, follows=True)
    if len(lines) > MOST_DOWN or len(columns) > MOST_ACROSS:
        st.caption(
            f"The first {MOST_DOWN} devices and {MOST_ACROSS} columns are drawn: choose devices, jobs or formats for others."
        )
    lines, columns = lines[:MOST_DOWN], columns[:MOST_ACROSS]
    cells = {(lines.index(line), columns.index(column)): row for (line, column), row in best.items()
             if line in lines and column in columns}  # fmt: skip
    names = [_name(selection, line) for line in lines]
    heat = standings_map(names, columns, cells, SHARES[share])
    figure = heat_figure(heat, selection.theme)
    alt = f"Best share of the roof of {counted(len(lines), 'device')} in each of {len(columns)} jobs and formats"
    clicked = show(
        figure, "standings", f"{alt}; the tables below have the same as numbers", "roofbench-overview", choosing=True
    )
    choose_case("standings", clicked_row(cells.values(), clicked))
    titles = [f"{column.job} {column.format}" for column in columns]
    several = len(lines) > 1
    whys({(names[down] if several else "", titles[across]): row for (down, across), row in sorted(cells.items())})
    return st.container()


def _name(selection: Selection, line: Line) -> str:
    device, kind = line
    return selection.names[device] + ("" if kind == "measured" else f", {kind}")


def _device(selection: Selection, device: Device) -> None:
    """Of a single device its roofline and the best of each format: there is nothing beside it to compare with."""
    picked = selection.pick(device, alone=True)
    if not picked.rows:
        return
    best = headlines(selection.best_of(device), selection.count_of(device))
    rows = _with_best(picked.rows, [row for each in best for row in (each.best, each.burst) if row is not None])
    st.subheader(plain(selection.names[device]))
    st.caption(sheet_lines(selection, device, picked.rows))
    roofs = roofs_of(selection, device, rows).only(("spec", "empirical"))
    figure = roofline_figure(rows, roofs, selection.theme)
    clicked = show(figure, "overview-roofline", f"Roofline of {selection.names[device]}", "roofbench-roofline", choosing=True)
    choose_case("overview-roofline", clicked_row(rows, clicked))
    st.caption(". ".join(part for part in (f"{SHOWN} The best of a format is shown as well", picked.note) if part) + ".")
    cards(best, several_runs=len({group.run for group in selection.of(device)}) > 1)


def _with_best(rows: Sequence[ResultRow], best: Sequence[ResultRow]) -> tuple[ResultRow, ...]:
    """The rows, but of a case that has the best of a format that result: a card's is a point of the figure."""
    heads = {(row.case_key, row.evidence): row for row in best}
    return tuple(heads.get((row.case_key, row.evidence), row) for row in rows)


def _table(selection: Selection, best: Best, lines: Sequence[Line]) -> None:
    st.subheader("Devices")
    per_joule = giga_per_joule(row.multiplied for row in best.values() if row.flops)
    frame = pd.DataFrame([line for each in lines for line in _lines(selection, best, each, per_joule)])
    number = st.column_config.NumberColumn
    columns = {
        "Device": st.column_config.TextColumn(pinned=bool(frame["Device"].str.len().max() <= MOST_PINNED)),
        "Of spec": number(format=SHARE, help="Share of the roof by the spec sheet"),
        "Marks": st.column_config.TextColumn(help=HELP),
        "At clock": number(format=SHARE, help="Share of the roof at the clock that the device counted"),
        per_joule: number(
            format="%.4g", help="Useful operations per joule, in 10^9, where energy was read: measure.energy=true"
        ),
        "W": number(format="%.0f", help="Mean power of sustained windows"),
        "Finished": st.column_config.TextColumn(help="How fresh it is: when the result was stored, UTC"),
    }
    frame = frame.drop(columns=[name for name in _EMPTY_LEFT_OUT if frame[name].isna().all()])
    alt = "The best result of each device in each job and format"
    legend(best.values())
    frame_with_downloads(frame, "devices", alt, columns, shares=("Of spec", "At clock"))


def _lines(selection: Selection, best: Best, line: Line, per_joule: str) -> list[dict[str, Any]]:
    own = {column: row for (each, column), row in best.items() if each == line}
    return [
        {
            "Device": _name(selection, line),
            "Job": column.job,
            "Format": column.format,
            "Of spec": row.fractions.spec,
            "Marks": codes(row),
            "Outcome": outcome(row),
            "Rate": best_rate(row) if row.p50_s is not None else None,
            "At clock": row.fractions.at_clock,
            per_joule: row.flops / row.energy_j / 1e9 if row.energy_j and row.flops else None,
            "W": row.power_w,
            "Clock": si(row.clock_hz, "Hz") if row.clock_hz else None,
            "Case": case_detail(row)[:120],
            "Regime": row.regime,
            "Finished": moment(row.finished_at),
            "Remarks": "; ".join(marks(row)),
        }
        for column in in_order(own)
        for row in (own[column],)
    ]
