"""One run: how far it is, the machine it ran on, every case with its samples, its logs, and the command that runs it again."""

from collections.abc import Mapping, Sequence

import streamlit as st

from dashboard.address import choose_one
from dashboard.case import case_section, choose_case
from dashboard.empty import nothing_matches
from dashboard.frames import small_frame
from dashboard.listing import results_section
from dashboard.progress import progress
from dashboard.selection import Selection, device_names
from dashboard.shelf import Shelf
from dashboard.sidebar import run_labels
from dashboard.stores import Run, Stores, newest_of
from dashboard.text import plain
from dashboard.theme import theme
from suite.errors import StoreUnusable
from suite.report.privacy import Scrubber
from suite.report.reproduce import rerun_command
from suite.report.sheets import sheet_of
from suite.report.system import Group as Section
from suite.report.system import device_group, environment_groups, together
from suite.rows import RunInfo

TITLE = "Run"
ORDER = 70
LOG_CHARACTERS = 40_000  # of the end of a log: where a failure says what it was


def render_stores(stores: Stores) -> None:
    """Draw the page."""
    run = _choose(stores)
    shelf = stores.shelves[run.store]
    info = shelf.info(run.entry.run)
    progress(shelf, run.entry)
    if info.note:
        st.caption(plain(info.note))
    _cases(stores, run, shelf)
    _again(info, shelf)
    _machine(shelf, run)
    _logs(shelf, run)


def _choose(stores: Stores) -> Run:
    names = {run.entry.run: run for run in reversed(stores.runs)}
    newest = newest_of(stores)
    options = [run.entry.run for run in stores.runs]
    labels = run_labels(stores)
    chosen = choose_one(
        "Run", "one", list(dict.fromkeys(options)), lambda name: labels[names[name]], newest.entry.run, is_always_told=True
    )
    return names[chosen]


def _cases(stores: Stores, run: Run, shelf: Shelf) -> None:
    place = st.container()
    selection = _selection(stores, run, shelf)
    if not selection.groups:
        nothing_matches("", False)
        return
    choose_case("run-table", results_section(selection, "run"))
    with place:
        case_section(selection)


def _selection(stores: Stores, run: Run, shelf: Shelf) -> Selection:
    """Everything of one run, unfiltered."""
    held = shelf.held([run.entry.run], wait_s=5.0)
    names = device_names(stores)
    present = {device for device, _ in held.pairs}
    return Selection(
        stores=stores,
        job="",
        groups=held.pairs,
        devices=tuple(device for device in names if device in present),
        names=names,
        known=tuple(names),
        runs=(run.entry.run,),
        regimes=(),
        formats=(),
        implementations=(),
        evidence=(),
        missing=held.missing,
        problems=held.problems,
        theme=theme(),
    )


def _again(info: RunInfo, shelf: Shelf) -> None:
    st.subheader("Run it again")
    command = rerun_command(info, Scrubber.of(shelf.environment(info.run)))
    version = f"roofbench {info.version}" + (f", commit {info.commit}" if info.commit else ", commit not recorded")
    st.caption(plain(f"In a clone of {version}:"))
    st.code(command.line[:2_000], language=None, wrap_lines=True)
    for caution in command.cautions:
        st.caption(plain(f"Note: {caution}."))
    with st.expander("The settings, as a file"):
        st.code(command.file[:20_000], language=None)


def _machine(shelf: Shelf, run: Run) -> None:
    st.subheader("Machine")
    try:
        devices = [device_group(each.info, sheet_of(each), each.match_reason) for each in shelf.devices(run.entry.run)]
        environment = environment_groups(shelf.environment(run.entry.run))
        _sections((*devices, *(each._replace(fields=together(each.fields)) for each in environment)))
    except StoreUnusable as error:
        st.error(plain(str(error)))


def _sections(sections: Sequence[Section]) -> None:
    lines = [
        {
            "Part": section.title[:60],
            "Field": field.name[:80],
            "Value": field.value[:300] or None,
            "Known by": field.status[:40],
            "Remark": field.reason[:200],
        }
        for section in sections
        for field in section.fields
    ]
    alt = "The machine: devices, host and libraries, each field with how it is known"
    small_frame(lines, alt)


def _logs(shelf: Shelf, run: Run) -> None:
    sizes: Mapping[str, int] = shelf.log_sizes(run.entry.run)
    st.subheader("Logs")
    if not sizes:
        st.caption("This run has stored no log: nothing was printed by its workers.")
        return
    name = choose_one("Log", "log", list(sizes), lambda each: f"{each[:80]}, {sizes[each]:,} characters")
    text = shelf.log_end(run.entry.run, name, LOG_CHARACTERS)
    if sizes[name] > len(text):
        st.caption(f"The last {len(text):,} of {sizes[name]:,} characters.")
    st.code(text, language=None, height=400)
    st.download_button("Download this log", text, "roofbench-log.txt", "text/plain", on_click="ignore")
