"""What every kernel becomes on hardware that need not be there: compiled, never measured."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.address import choose
from dashboard.figure import show
from dashboard.frames import frame_with_downloads, text_table
from dashboard.stores import Stores
from dashboard.theme import theme
from suite.report.targets_figure import targets_figure
from suite.report.targets_matrix import TITLES, ordered
from suite.report.targets_table import cell_lines, reason_lines
from suite.report.words import counted
from suite.targets.derived import LEAVES_OUT
from suite.targets.names import BY_NAME
from suite.targets.record import Compiled

TITLE = "Targets"
ORDER = 85
FIRST_STEP = "roofbench targets"


def render_stores(stores: Stores) -> None:
    """Draw the page."""
    cells = newest(stores)
    if not cells:
        st.info("Nothing was compiled yet.")
        st.write("It takes no hardware, and minutes:")
        st.code(FIRST_STEP, language=None)
        return
    st.caption(
        f"{counted(len(cells), 'cell')}, compiled: no program here has run. That one compiles does not make it native: the "
        "marks say what it multiplies in. Occupancy is what registers, shared memory and blocks leave at most; XLA's "
        f"estimate {LEAVES_OUT}."
    )
    with st.container(horizontal=True):
        kernels = choose("Kernels", "kernel", sorted({cell.kernel for cell in cells}))
        targets = choose("Targets", "target", [name for name in BY_NAME if any(cell.target == name for cell in cells)])
    shown = [cell for cell in cells if _is_chosen(cell.kernel, kernels) and _is_chosen(cell.target, targets)]
    for kind, title in TITLES.items():
        _matrix(title, kind, [cell for cell in shown if BY_NAME[cell.target].kind == kind])
    _reasons(shown)
    st.subheader("Every cell")
    columns = {"Occupancy": _share(), "Of the roof": _share(), "Program": st.column_config.TextColumn(pinned=True)}
    frame_with_downloads(pd.DataFrame(cell_lines(shown)), "targets", "What each program became on each target", columns)


def newest(stores: Stores) -> list[Compiled]:
    """Of every program on every known target what any store compiled last, by kernel, program and target."""
    found: dict[tuple[str, str], Compiled] = {}
    for shelf in stores.shelves:
        for cell in shelf.compiled():
            place = (cell.program, cell.target)
            if cell.target in BY_NAME and (place not in found or found[place].compiled_at < cell.compiled_at):
                found[place] = cell
    return ordered(found.values())


def _is_chosen(name: str, chosen: Sequence[str]) -> bool:
    return not chosen or name in chosen


def _matrix(title: str, kind: str, cells: Sequence[Compiled]) -> None:
    if not cells:
        return
    st.subheader(title)
    targets = [name for name in BY_NAME if any(cell.target == name for cell in cells)]
    programs = len({cell.program for cell in cells})
    alt = f"What {counted(programs, 'program')} became on {counted(len(targets), 'target')}"
    show(targets_figure(cells, targets, theme()), f"targets-{kind}", alt, f"roofbench-targets-{kind}")


def _reasons(cells: Sequence[Compiled]) -> None:
    lines = reason_lines(cells)
    if lines:
        st.subheader("Why cells are empty")
        text_table(lines, "reasons", "Reasons why programs were not compiled")


def _share() -> Any:
    return st.column_config.NumberColumn(format="percent")
