"""Matrix products: heat maps over shapes, and what each number format gives and costs."""

from collections.abc import Sequence

import streamlit as st

from dashboard.address import choose_one
from dashboard.case import case_section, choose_case, clicked_row
from dashboard.compare_lines import was_measured
from dashboard.contests import side_by_side
from dashboard.empty import nothing_matches
from dashboard.figure import show
from dashboard.ladder import precision_ladder
from dashboard.lever import batch_lever
from dashboard.listing import results_section
from dashboard.narrow import choose_device
from dashboard.opening import as_asked, first_option, first_value, tells
from dashboard.roofs import roofs_of, sheet_lines
from dashboard.selection import Selection
from dashboard.shelf import Device
from dashboard.text import plain
from dashboard.whys import whys
from suite.report.curves import Quantity
from suite.report.gemm_shapes import shape_map
from suite.report.heat import heat_figure
from suite.report.lines import Field, backend_of, data_of, evidence_of, execution_of, format_of, implementation_of, regime_of
from suite.report.roofs import drawable
from suite.report.standings import SHOWN
from suite.report.values import VALUES
from suite.rows import ResultRow

TITLE = "GEMM"
ORDER = 20
JOB = "gemm"
USUAL = ("bf16", "cold/sustained/device", "measured", "library", "native", "normal")  # what a person most likely asks for first


def render(selection: Selection) -> None:
    """Draw the page."""
    if not selection.groups:
        nothing_matches(JOB, was_measured(selection))
        return
    device = choose_device(selection)
    picked = selection.pick(device, alone=True)
    st.caption(sheet_lines(selection, device, picked.rows))
    _shapes(selection, device, picked.rows)
    st.caption(". ".join(part for part in (SHOWN.removesuffix("."), picked.note) if part) + ".")
    place = st.container()
    whole = selection.of_every_run(device, picked.rows)
    batch_lever(whole, roofs_of(selection, device, picked.rows), selection.theme)
    side_by_side(picked.rows, "gemm", selection.whose)
    precision_ladder(whole, selection.theme, key=f"ladder-{device.uid[:40]}")
    choose_case("gemm-table", results_section(selection, "gemm"))
    with place:
        case_section(selection)


def _shapes(selection: Selection, device: Device, rows: Sequence[ResultRow]) -> None:
    st.subheader("Shapes")
    titles = {"fmt": "Format", "under": "Regime", "kind": "Evidence", "on": "Backend", "by": "Implementation"}
    titles |= {"as": "Execution", "data": "Data"}
    fields: dict[str, Field] = {
        "fmt": format_of,
        "under": regime_of,
        "kind": evidence_of,
        "on": backend_of,
        "by": implementation_of,
        "as": execution_of,
        "data": data_of,
    }
    with st.container(horizontal=True):
        first = first_value(as_asked(rows, fields), VALUES, "of spec", _tells)
        value = VALUES[choose_one("Show", "value", list(VALUES), lambda name: VALUES[name].title, first, follows=True)]
        for name, field in fields.items():
            options = sorted({field(row) for row in rows})
            if len(options) > 1:
                told = [field(row) for row in as_asked(rows, fields, besides=name) if _tells(row, value)]
                chosen = choose_one(titles[name], name, options, default=first_option(options, USUAL, told), follows=True)
                rows = [row for row in rows if field(row) == chosen]
    heat, left_out = shape_map(rows, value)
    if not heat.cells:
        st.info("None of these results has this value. Show another, or clear a filter.")
        return
    alt = f"{value.title} of products by their shape, on {selection.names[device]}"
    clicked = show(heat_figure(heat, selection.theme), "shapes", alt, "roofbench-gemm-shapes", choosing=True)
    choose_case("shapes", clicked_row([cell.row for cell in heat.cells.values()], clicked))
    cells = sorted(heat.cells.items())
    whys({("", f"{heat.rows[down]} x {heat.columns[across]}"): cell.row for (down, across), cell in cells})
    if left_out:
        st.caption(plain(f"{left_out} shapes have no place here: choose fewer, or see the table."))


def _tells(row: ResultRow, value: Quantity) -> bool:
    return drawable(row) and tells(row, value)
