"""The precision ladder of a device: one shape and regime at a time, as a figure and as a table that sorts by value."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from dashboard.address import choose_one
from dashboard.figure import show
from dashboard.frames import SHARE, TIMES, in_percent
from dashboard.mark_codes import HELP, codes, legend
from dashboard.text import plain
from suite.report.ladder import ABOUT, Ladder, Rung, ladders
from suite.report.ladder_figure import ladder_figure
from suite.report.palette import Theme
from suite.report.words import common_unit, giga_per_joule, relative_half_width, resolved, tera_rates
from suite.rows import ResultRow


def precision_ladder(rows: Sequence[ResultRow], theme: Theme, key: str) -> None:
    """Draw what ``rows`` of one device hold in three or more formats; nothing where they hold no such shape."""
    found = {f"{ladder.run} {ladder.shape} {ladder.regime}": ladder for ladder in ladders(rows)}
    if not found:
        return
    st.subheader("Precision ladder")
    st.caption(ABOUT)
    several_runs = len({ladder.run for ladder in found.values()}) > 1
    chosen = choose_one("Shape and regime", key, list(found), lambda name: _title(found[name], several_runs))
    _ladder(found[chosen], theme, key)


def _title(ladder: Ladder, several_runs: bool) -> str:
    return f"{ladder.title}, run {ladder.run}" if several_runs else ladder.title


def _ladder(ladder: Ladder, theme: Theme, key: str) -> None:
    figure = ladder_figure(ladder, theme)
    if figure is not None:
        alt = f"Speed against the error of rounding the data, format by format: {ladder.title}"
        show(figure, f"{key}-figure", alt, "roofbench-ladder")
    st.caption(plain(ladder.note))
    frame = pd.DataFrame([_line(rung, ladder) for rung in ladder.rungs]).dropna(axis="columns", how="all")
    repeated = ["By"] if frame["By"].nunique() == 1 else []
    legend(rung.row for rung in ladder.rungs)
    st.dataframe(
        in_percent(frame.drop(columns=repeated), ("Of spec",)),
        column_config=_columns(ladder),
        hide_index=True,
        width="stretch",
        placeholder="–",
        alt=f"Formats of {ladder.title}",
    )


def _line(rung: Rung, ladder: Ladder) -> dict[str, Any]:
    speed, units = rung.speed, _units(ladder)
    half_width = relative_half_width(rung.row) if resolved(rung.row) else None
    low, high = speed.interval if speed is not None and speed.interval is not None else (None, None)
    return {
        "No.": rung.number,
        "Format": rung.name,
        "Marks": codes(rung.row),
        _over(ladder): speed.times if speed is not None else None,
        "From": low,
        "To": high,
        units.time: None if rung.row.p50_s is None else rung.row.p50_s / units.unit_s,
        "±": None if half_width is None else 100 * half_width,
        **{_error(kind): rung.errors.get(kind) for kind in ladder.distributions},
        units.rate: (rung.row.flop_s or 0.0) / 1e12,
        "Of spec": rung.row.fractions.spec,
        "Bound": rung.row.bound,
        "Execution": rung.execution,
        units.per_joule: rung.flop_per_j / 1e9 if rung.flop_per_j is not None else None,
        "By": rung.by,
        "Remarks": rung.marks or None,
    }


class _Units(NamedTuple):
    """Headings of rates, operations per joule and times, with the seconds of a time's unit."""

    rate: str
    per_joule: str
    time: str
    unit_s: float


def _units(ladder: Ladder) -> _Units:
    """Those of integers alone are no FLOP."""
    formats = [rung.row.multiplied for rung in ladder.rungs]
    unit_s, unit = common_unit(rung.row.p50_s for rung in ladder.rungs)
    return _Units(tera_rates(formats), giga_per_joule(formats), f"Time ({unit})", unit_s)


def _over(ladder: Ladder) -> str:
    return f"Over {ladder.base}"


def _error(kind: str) -> str:
    return f"Error, {kind}"


def _columns(ladder: Ladder) -> dict[str, Any]:
    units = _units(ladder)
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    errors = {_error(kind): number(format="%.1e", help=f"Quantisation error on {kind} data") for kind in ladder.distributions}
    return {
        "No.": number(width=40, help="The point of this number in the figure"),
        "Format": text(pinned=True, width=150, help="Number format, and what shares a scale"),
        "Marks": text(help=HELP),
        _over(ladder): number(
            format=TIMES, help=f"Speed relative to the fastest {ladder.base} of the same shape, regime and data"
        ),
        "From": number(format=TIMES, help="Lower end of the 95 % interval of the relative speed; none where not resolved"),
        "To": number(format=TIMES, help="Upper end of that interval"),
        units.time: number(format="%.4g", help="Median of one launch"),
        "±": number(format="%.2g %%", help="Half the width of the median's 95 % interval; none where that is above 100 %"),
        **errors,
        units.rate: number(format="%.4g", help="Useful operations per second, in 10^12: FLOP, or OP of integer formats"),
        "Of spec": number(format=SHARE, help="Share of the roof by the spec sheet"),
        units.per_joule: number(format="%.4g", help="Useful operations per joule, in sustained windows of 2 s and more"),
    }
