"""One case in full under whatever it was chosen from: its number, floors and checks, and its samples over time."""

from collections.abc import Iterable, Sequence
from typing import Any

import streamlit as st

from dashboard.address import given, put
from dashboard.figure import show
from dashboard.frames import small_frame
from dashboard.selection import Selection
from dashboard.shelf import Shelf
from dashboard.stores import Stores
from dashboard.text import plain, sentence
from suite.errors import UsageError
from suite.outcome import Evidence
from suite.report.floors import Floor, Ground, floors, missed_by, times_over, verdict
from suite.report.hover import explained, known_by
from suite.report.panels import device_of
from suite.report.sheets import sheet_of
from suite.report.timeline import timeline
from suite.report.timeline_figure import timeline_figure
from suite.report.words import (
    case_title,
    counted,
    duration,
    marks,
    moment,
    percent,
    rate_unit,
    relative_error,
    si,
    timing,
)
from suite.roofline import Ceilings
from suite.rows import ResultDetail, ResultRow

PARAMETER = "case"


def name_of(row: ResultRow) -> str:
    """How a case stands in the address: its run, its key and its slot."""
    return f"{row.run} {row.case_key}@{row.device_slot}"


def choose_case(source: str, row: ResultRow | None) -> None:
    """Take what was clicked in a figure or table; a choice that stands from before changes nothing."""
    seen: dict[str, str] = st.session_state.setdefault("clicked", {})
    name = name_of(row) if row is not None else ""
    if name != seen.get(source, ""):
        seen[source] = name
        if name:
            put(PARAMETER, [name])


def clicked_row(rows: Iterable[ResultRow], customdata: Any) -> ResultRow | None:
    """The row of a point's customdata: a result's id in a figure of one store, what ``known_by`` says in one of several."""
    return next((row for row in rows if customdata in (row.result_id, known_by(row))), None)


def case_section(selection: Selection) -> None:
    """Draw the case that the address names; nothing where it names none."""
    name = next(iter(given(PARAMETER)), "")
    run, _, case = name.partition(" ")
    if not case:
        return
    shelf = shelf_of(selection.stores, run)
    try:
        detail = shelf.detail(run, case) if shelf is not None else None
    except UsageError as error:
        st.warning(sentence(str(error)))
        return
    if detail is None or shelf is None:
        st.warning("This link names a case that is in no open store.")
        return
    with st.container(border=True):
        _heading(detail.row)
        _draw(shelf, detail, selection)


def shelf_of(stores: Stores, run: str) -> Shelf | None:
    """The store that has a run of this name."""
    return next((stores.shelves[each.store] for each in stores.runs if each.entry.run == run), None)


def _heading(row: ResultRow) -> None:
    title, close = st.columns([0.85, 0.15], vertical_alignment="center")
    title.markdown(f"#### {plain(case_title(row))}")
    close.button("Close", key="close-case", on_click=lambda: put(PARAMETER, []), help="Close this case")


def _draw(shelf: Shelf, detail: ResultDetail, selection: Selection) -> None:
    row = detail.row
    st.caption(plain(f"{row.device}, run {row.run}, {row.evidence}, {row.execution}, finished {moment(row.finished_at)}"))
    if row.p50_s is None:
        st.error(plain(f"{row.outcome.replace('_', ' ')}: {row.reason or 'no reason was stored'}"))
    else:
        ground = ground_of(shelf, row)
        found = floors(row, ground)
        st.write(plain(f"{verdict(row, found)}."))
        with st.container(horizontal=True):
            for label, value in _figures(row).items():
                st.metric(label, value)
        if found_marks := marks(row):
            st.warning("  \n".join(plain(explained(mark)) for mark in found_marks))
        _over_time(detail, ground.ceilings.info.power_limit_w, selection)
        _table("Floors, the shortest times that each limit allows", _floor_lines(row, found))
    _table("Checks against the reference", _check_lines(detail))
    _table("What ran", _described(detail))
    if detail.log:
        with st.expander("Log of the worker, its end"):
            st.code(detail.log[-20_000:], language=None)


def ground_of(shelf: Shelf, row: ResultRow) -> Ground:
    """What a result is held against."""
    device = device_of(shelf.devices(row.run), row)
    history = shelf.calibrations_of(row.device_uid, device.info.backend, Evidence(row.evidence))
    return Ground(Ceilings(device.info, sheet_of(device)), history.at(row.finished_at))


def _figures(row: ResultRow) -> dict[str, str]:
    rate = {"Rate": si(row.flop_s, rate_unit(row.multiplied))} if row.flops else {}
    shares = {"Of spec": percent(row.fractions.spec), "At clock": percent(row.fractions.at_clock)}
    return {"Median": timing(row), **rate, "Bandwidth": si(row.bytes_s, "B/s"), **shares}


def _over_time(detail: ResultDetail, power_limit_w: float | None, selection: Selection) -> None:
    found, samples = timeline(detail.measurement), detail.measurement.samples
    if found is None or samples is None:
        return
    figure = timeline_figure(found, power_limit_w, selection.theme)
    taken = f"{counted(samples.count, 'sample')} of {counted(samples.launches, 'launch', 'launches')} each, by {samples.method}"
    show(figure, "case-timeline", f"Samples of the case over time, with clock and power under them: {taken}", "case-over-time")
    st.caption(plain(". ".join(filter(None, (taken, found.about_clocks)))))


def _floor_lines(row: ResultRow, found: Sequence[Floor]) -> list[dict[str, str]]:
    return [
        {
            "Floor": floor.name + (" (the roof here)" if floor.applies else ""),
            "Time": duration(floor.time_s),
            "Median over it": times_over(missed_by(row, floor)) or "–",
            "By": floor.basis,
        }
        for floor in found
    ]


def _check_lines(detail: ResultDetail) -> list[dict[str, Any]]:
    measured = detail.measurement
    checks = (("before timing", measured.check_before), ("after timing", measured.check_after))
    return [
        {
            "When": when,
            "Verdict": "passed" if check.passed else f"failed: {check.reason}"[:200],
            "Relative error": _error(check.error_rel),
            "Allowed": _error(check.tolerance),
            "Unwritten": check.unwritten,
            "Not finite": check.nonfinite,
        }
        for when, check in checks
        if check is not None
    ]


def _error(value: float | None) -> str | None:
    """In words: a table of numbers writes out every zero of ``6.0e-16``."""
    return None if value is None else relative_error(value)


def _described(detail: ResultDetail) -> list[dict[str, str]]:
    row, measured = detail.row, detail.measurement
    known: dict[str, Any] = {
        **row.params,
        **row.switches,
        **row.semantics,
        **measured.description,
        **{f"{name} took": duration(taken_s) for name, taken_s in measured.phases_s.items()},
    }
    return [{"What": str(name)[:80], "Value": text} for name, value in known.items() if (text := _words(value))]


def _words(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)[:300]


def _table(title: str, lines: list[dict[str, Any]]) -> None:
    if lines:
        st.caption(title)
        small_frame(lines, title)
