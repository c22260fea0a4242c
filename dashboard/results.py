"""Result rows as a table that sorts by value: numbers stay numbers, in the units of its headings."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from dashboard.frames import PINNED_PX, SHARE, in_percent, text_characters, text_px
from dashboard.mark_codes import HELP, codes, legend
from dashboard.text import plain
from suite.report.columns import EMPIRICAL, outcome
from suite.report.printable import clipped, printable
from suite.report.words import (
    case_name,
    common_unit,
    relative_half_width,
    remarks,
    resolved,
    tera_rates,
    variation,
)
from suite.rows import ResultRow

_SHARES = ("Of spec", "At clock", "Empirical", "Of boost")
_CASE_PX = 420  # at most
_OUTCOME_PX = 130  # at most: ``out of memory``
_TEXT_CHARACTERS = 160  # of a cell
_SAME_LEFT_OUT = ("Backend", "Device", "Run", "Implementation", "Job", "Evidence")
# What two lines of one case differ in stands beside its name where there are several: further right it is not seen.
_TELLING = ("Backend", "Device", "Evidence", "Format", "Implementation", "Regime")
_EMPTY_LEFT_OUT = ("Marks", "Outcome", "Quantisation", "Energy (J)", "Tokens/s")


def results_table(rows: Sequence[ResultRow], key: str, alt: str, whose: Callable[[ResultRow], str]) -> ResultRow | None:
    """Every row with its figures, and the one that a person chose; cases that failed keep their line, with the reason.

    ``whose`` is what the device of a row is called on the page.
    """
    titles = _Titles(tera_rates(row.multiplied for row in rows), *common_unit(row.p50_s for row in rows))
    names, shared = told_apart(case_names(rows), [row.job for row in rows])
    frame = pd.DataFrame([_line(row, name, whose(row), titles) for row, name in zip(rows, names, strict=True)])
    frame["Regime"], regime = regimes_apart(rows)
    if said := "; ".join(filter(None, (shared, regime))):
        st.caption(plain(f"The same in all of them: {said}."))
    legend(rows)
    left_out = [name for name in _SAME_LEFT_OUT if frame[name].nunique() == 1]
    left_out += [name for name in _EMPTY_LEFT_OUT if frame[name].isna().all()]
    event = st.dataframe(
        in_percent(told_apart_first(frame).drop(columns=left_out), _SHARES),
        column_config=_columns(titles, frame),
        hide_index=True,
        width="stretch",
        placeholder="–",
        key=key,
        alt=alt,
        on_select="rerun",
        selection_mode="single-row",
        lazy=False,
    )
    chosen = event.selection.rows if event is not None else []
    return rows[chosen[0]] if chosen and chosen[0] < len(rows) else None


def told_apart_first(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with marks and the columns in which its lines differ right behind their names: they are seen on every screen.

    A backend that each device has one of tells nothing that the device does not.
    """
    several = [name for name in _TELLING if frame[name].nunique() > 1]
    if "Device" in several and frame.groupby("Device")["Backend"].nunique().max() == 1:
        several = [name for name in several if name != "Backend"]
    first = ["Case", "Marks", *several]
    return frame[[*first, *(name for name in frame.columns if name not in first)]]


def case_names(rows: Sequence[ResultRow]) -> list[str]:
    """Job, sizes and unusual data of each, with the switches in which cases differ that would else have one name.

    The table's other columns tell cases apart too: a switch that follows from the format or the implementation is left out.
    """
    alike: dict[tuple[str, ...], list[ResultRow]] = {}
    for row in rows:
        alike.setdefault(_alike(row), []).append(row)
    names = []
    for row in rows:
        others = alike[_alike(row)]
        differing = [name for name, value in sorted(row.switches.items()) if any(o.switches.get(name) != value for o in others)]
        names.append(" ".join([case_name(row), *(f"{name}={row.switches[name]}" for name in differing)]))
    return names


def _alike(row: ResultRow) -> tuple[str, ...]:
    return case_name(row), row.format_label, row.implementation, row.backend, row.regime


class _Titles(NamedTuple):
    """The units of one table: of its rates, and of its times with the seconds that one of them has."""

    rate: str
    unit_s: float
    unit: str

    @property
    def time(self) -> str:
        return f"Time ({self.unit})"


def told_apart(names: Sequence[str], jobs: Sequence[str]) -> tuple[list[str], str]:
    """Names without the settings (``layout=nt``) that all of the same job have, and these."""
    words = [name.split(" ") for name in names]
    said: dict[str, list[str]] = {}
    for job in dict.fromkeys(jobs):
        own = [each for each, whose in zip(words, jobs, strict=True) if whose == job]
        common = set.intersection(*map(set, own)) if len(own) > 1 else set()
        said[job] = [word for word in own[0] if "=" in word and word in common]
    short = [" ".join(word for word in each if word not in said[job]) for each, job in zip(words, jobs, strict=True)]
    several = len(said) > 1
    return short, "; ".join(
        f"{job}: {', '.join(found)}" if several else ", ".join(found) for job, found in said.items() if found
    )


def regimes_apart(rows: Sequence[ResultRow]) -> tuple[list[str], str]:
    """What of their regimes is not the same in all, and what is; of one regime nothing is taken out."""
    axes = [(row.cache, row.load, row.dispatch) for row in rows]
    several = [len(set(values)) > 1 for values in zip(*axes, strict=True)]
    if not any(several):
        return [row.regime for row in rows], ""
    apart = ["/".join(value for value, differs in zip(each, several, strict=True) if differs) for each in axes]
    return apart, ", ".join(value for value, differs in zip(axes[0], several, strict=True) if not differs)


def _line(row: ResultRow, name: str, device: str, titles: _Titles) -> dict[str, Any]:
    half_width = relative_half_width(row) if resolved(row) else None
    return {
        "Case": _text(name),
        titles.time: _scaled(row.p50_s, titles.unit_s),
        "±": _scaled(half_width, 1e-2),
        "Of spec": row.fractions.spec,
        "Marks": codes(row),
        "Outcome": None if (ended := outcome(row)) is None else _text(ended),
        "Bound": None if row.p50_s is None else _text(row.bound or "unknown"),
        "Format": _text(row.format_label),
        "Regime": _text(row.regime),
        titles.rate: _scaled(row.flop_s or None, 1e12),
        "GB/s": _scaled(row.bytes_s or None, 1e9),
        "Tokens/s": row.tokens_s,
        "At clock": row.fractions.at_clock,
        "Empirical": row.fractions.empirical,
        "Of boost": row.fractions.boost,
        "Device": _text(device),
        "Backend": _text(row.backend),
        "Run": _text(row.run),
        "Job": _text(row.job),
        "Implementation": _text(row.implementation),
        "Evidence": _text(row.evidence),
        "Clock (MHz)": _scaled(row.clock_hz, 1e6),
        "Power (W)": row.power_w,
        "Energy (J)": row.energy_j,
        "Error": row.error_rel,
        "Quantisation": row.quantisation_error,
        "Switches": _text(variation(row)),
        "Finished": row.finished_at,
        "Remarks": remarks(row),
    }


def _text(text: str) -> str:
    return clipped(printable(text), _TEXT_CHARACTERS)


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _case_column(names: "pd.Series[str]") -> Any:
    """In sight always, cut to what a telephone has room for; whole, and out of sight where it scrolls, where that would leave
    two names that look alike.
    """
    width, seen = text_px(names, _CASE_PX), text_characters(PINNED_PX)
    tells = names.str.slice(0, seen).nunique() == names.nunique()
    return st.column_config.TextColumn(pinned=tells, width=min(width, PINNED_PX) if tells else width)


def _columns(titles: _Titles, frame: pd.DataFrame) -> dict[str, Any]:
    number = st.column_config.NumberColumn
    return {
        "Case": _case_column(frame["Case"]),
        "Outcome": st.column_config.TextColumn(
            help="How the case ended when it has no verified result; Remarks say why",
            width=text_px(frame["Outcome"].dropna(), _OUTCOME_PX),
        ),
        "Bound": st.column_config.TextColumn(help="What limits the case"),
        "Marks": st.column_config.TextColumn(
            help=HELP,
            width=text_px(["Marks", *frame["Marks"].dropna()], _OUTCOME_PX),
        ),
        "Of spec": number(format=SHARE, help="Share of the roof by the spec sheet"),
        "Of boost": number(format=SHARE, help="Share of the roof at the maximum clock"),
        "At clock": number(format=SHARE, help="Share of the roof at the clock that the device counted while the case ran"),
        "Empirical": number(format=SHARE, help=EMPIRICAL),
        titles.time: number(format="%.4g", help="Median of one launch"),
        "±": number(format="%.2g %%", help="Half the width of the median's 95 % interval; none where that is above 100 %"),
        titles.rate: number(format="%.4g", help="Useful operations per second, in 10^12: FLOP, or OP of integer formats"),
        "GB/s": number(format="%.4g", help="Compulsory bytes per second; busbw of a collective"),
        "Tokens/s": number(format="%.4g", help="New tokens of all sequences per second"),
        "Clock (MHz)": number(format="%.0f"),
        "Power (W)": number(format="%.0f"),
        "Energy (J)": number(format="%.3g", help="Of one launch, in sustained windows of 2 s and more"),
        "Error": number(format="%.1e", help="Relative error against the reference"),
        "Quantisation": number(format="%.1e", help="Relative error of the product that rounding the data to the format costs"),
        "Evidence": st.column_config.TextColumn(help="Measured here, imported, or simulated: kinds are never compared"),
        "Switches": st.column_config.TextColumn(help="Precision and library settings that are part of the case"),
        "Finished": st.column_config.TextColumn(help="When the result was stored, UTC"),
        "Regime": st.column_config.TextColumn(help="Cache, load and dispatch; what all have in common stands above the table"),
        "Remarks": st.column_config.TextColumn(
            help="Why a case has no result, or what to know before trusting one: not converged, contended, throttled"
        ),
    }
