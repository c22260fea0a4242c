"""Result rows as a table that sorts by value: numbers stay numbers, in the units of its headings."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from suite.report.columns import EMPIRICAL, ending
from suite.report.words import (
    common_unit,
    counted,
    relative_half_width,
    remarks,
    resolved,
    tera_rates,
    variation,
    workload_title,
)
from suite.rows import ResultRow

_SHARE = "percent"
_CHARACTER_PX, _EDGES_PX = 6.7, 20
_CASE_PX = 250  # at most: a telephone has 390 across, and the column does not scroll away


def results_table(rows: Sequence[ResultRow]) -> None:
    """Every case with its figures; cases that failed keep their line, with the reason under Remarks."""
    titles = _Titles(tera_rates(row.format for row in rows), *common_unit(row.p50_s for row in rows))
    frame = pd.DataFrame([_line(row, titles) for row in rows])
    st.caption(f"{counted(len(rows), 'case')}; the table scrolls sideways, and a heading sorts it.")
    left_out = [name for name in ("Device", "Run", "Implementation") if frame[name].nunique() == 1]
    left_out += [name for name in ("Quantisation",) if frame[name].isna().all()]
    st.dataframe(
        frame.drop(columns=left_out), column_config=_columns(titles, frame), hide_index=True, width="stretch", placeholder="–"
    )


class _Titles(NamedTuple):
    """The units of one table: of its rates, and of its times with the seconds that one of them has."""

    rate: str
    unit_s: float
    unit: str

    @property
    def time(self) -> str:
        return f"Time ({self.unit})"


def _line(row: ResultRow, titles: _Titles) -> dict[str, Any]:
    half_width = relative_half_width(row) if resolved(row) else None
    return {
        "Case": workload_title(row),
        titles.time: _scaled(row.p50_s, titles.unit_s),
        "Of spec": row.fractions.spec,
        "Bound": ending(row),
        "Format": row.format_label,
        "Regime": row.regime,
        titles.rate: _scaled(row.flop_s or None, 1e12),
        "GB/s": _scaled(row.bytes_s or None, 1e9),
        "± (%)": _scaled(half_width, 1e-2),
        "At clock": row.fractions.at_clock,
        "Empirical": row.fractions.empirical,
        "Of boost": row.fractions.boost,
        "Device": row.device,
        "Run": row.run,
        "Implementation": row.implementation,
        "Clock (MHz)": _scaled(row.clock_hz, 1e6),
        "Power (W)": row.power_w,
        "Error": row.error_rel,
        "Quantisation": row.quantisation_error,
        "Switches": variation(row),
        "Remarks": remarks(row),
    }


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _columns(titles: _Titles, frame: pd.DataFrame) -> dict[str, Any]:
    number = st.column_config.NumberColumn
    return {
        "Case": st.column_config.TextColumn(pinned=True, width=_case_px(frame["Case"])),
        "Bound": st.column_config.TextColumn(help="What limits the case, or how it ended when it has no result"),
        "Of spec": number(format=_SHARE, help="Share of the roof by the spec sheet"),
        "Of boost": number(format=_SHARE, help="Share of the roof at the maximum clock"),
        "At clock": number(format=_SHARE, help="Share of the roof at the clock that the device counted while the case ran"),
        "Empirical": number(format=_SHARE, help=EMPIRICAL),
        titles.time: number(format="%.4g", help="Median of one launch"),
        "± (%)": number(format="%.2f", help="Half the width of the median's 95 % interval; none where that is above 100 %"),
        titles.rate: number(format="%.4g", help="Useful operations per second, in 10^12: FLOP, or OP of integer formats"),
        "GB/s": number(format="%.4g", help="Compulsory bytes per second; busbw of a collective"),
        "Clock (MHz)": number(format="%.0f"),
        "Power (W)": number(format="%.0f"),
        "Error": number(format="%.1e", help="Relative error against the reference"),
        "Quantisation": number(format="%.1e", help="Relative error of the product that rounding the data to the format costs"),
        "Switches": st.column_config.TextColumn(help="Precision and library settings that are part of the case"),
    }


def _case_px(cases: "pd.Series[str]") -> int:
    """As wide as the longest name."""
    return min(_CASE_PX, round(_EDGES_PX + _CHARACTER_PX * max(map(len, cases))))
