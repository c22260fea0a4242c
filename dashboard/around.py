"""What stands around the curves of a job's page: the choice of their value above, contests, results and a case beneath."""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from dashboard.address import choose_one
from dashboard.case import case_section, choose_case
from dashboard.contests import side_by_side
from dashboard.listing import results_section
from dashboard.opening import as_asked, first_value
from dashboard.rivals import devices_side_by_side
from dashboard.selection import Selection
from dashboard.shelf import Device
from suite.report.curves import Quantity
from suite.rows import ResultRow


def chosen_value(
    known: Sequence[ResultRow], fields: Mapping[str, Callable[[ResultRow], str]], values: Mapping[str, Quantity], usual: str
) -> Quantity:
    """The value that somebody chooses; at first the usual one where any of the rows asked for has it."""
    first = first_value(as_asked(known, fields), values, usual)
    return values[choose_one("Show", "value", [*values], lambda name: values[name].title, first, follows=True)]


def contests_and_results(selection: Selection, rows: Mapping[Device, Sequence[ResultRow]], key: str) -> None:
    """Devices and implementations side by side, then every result; a case that is chosen there is drawn before them."""
    place = st.container()
    devices_side_by_side(selection, rows, key=key)
    side_by_side((row for each in rows.values() for row in each), key, selection.whose)
    choose_case(f"{key}-table", results_section(selection, key))
    with place:
        case_section(selection)
