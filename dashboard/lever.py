"""Batch size as a lever: one weight matrix at a time, as a figure and as a table of its batch sizes."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard.address import choose_one
from dashboard.case import choose_case, clicked_row
from dashboard.figure import show
from dashboard.frames import frame_with_downloads
from dashboard.text import plain
from suite.report.lever import ABOUT, levers, notes
from suite.report.lever_figure import lever_figure
from suite.report.palette import Theme
from suite.report.roofs import RoofSet
from suite.rows import ResultRow


def batch_lever(rows: Sequence[ResultRow], roofs: RoofSet, theme: Theme) -> None:
    """Draw what ``rows`` of one device hold of a weight matrix with many batch sizes; nothing where they hold none."""
    found = {f"{lever.title}, run {lever.run}": lever for lever in levers(rows)}
    if not found:
        return
    st.subheader("Batch size as a lever")
    st.caption(ABOUT)
    several_runs = len({lever.run for lever in found.values()}) > 1
    lever = found[
        choose_one("Weights and regime", "lever", list(found), lambda name: name if several_runs else found[name].title)
    ]
    figure = lever_figure(lever, roofs, theme)
    clicked = show(figure, "lever-figure", f"Rate against intensity over batch sizes: {lever.title}", "roofbench-lever", True)
    choose_case("lever", clicked_row(rows, clicked))
    for note in notes(lever):
        st.caption(plain(note))
    titles = ("M", *(f"{line.number}: {line.name}" for line in lever.lines))
    lines = [dict(zip(titles, (m, *lever.cells(m)), strict=True)) for m in lever.sizes]
    frame_with_downloads(pd.DataFrame(lines), "lever-table", f"Rates and bounds by batch size: {lever.title}")
