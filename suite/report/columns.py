"""The columns of a results table, in reading order: what the case is, how it ended, what limits it, how fast it was."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from suite.outcome import Outcome
from suite.report.quantities import tokens_rate
from suite.report.words import (
    bytes_rate,
    case_detail,
    flop_per_j,
    per_joule,
    percent,
    rate_unit,
    relative_error,
    remarks,
    si,
    timing,
)
from suite.rows import ResultRow

EMPIRICAL = "Share of the empirical roof: the best verified rate of the same load on this device, and its best bandwidth"
NOTHING = "–"  # a case that was not timed has no figures, which differs from a figure that is not known


class Column(NamedTuple):
    """One column: its heading, what it means, the text of a cell, and the value that sorts it."""

    title: str
    meaning: str
    text: Callable[[ResultRow], str]
    sort: Callable[[ResultRow], float | str | None]

    @property
    def numeric(self) -> bool:
        return self in FIGURES


def _figure(title: str, meaning: str, text: Callable[[ResultRow], str], sort: Callable[[ResultRow], float | None]) -> Column:
    """A column of figures, which only timed cases have."""
    return Column(title, meaning, lambda row: text(row) if row.p50_s is not None else NOTHING, sort)


def bound(row: ResultRow) -> str:
    """What limits a case that was timed."""
    return NOTHING if row.p50_s is None else row.bound or "unknown"


def outcome(row: ResultRow) -> str | None:
    """How a case ended that has no verified result; ``None`` for one that has."""
    return None if row.outcome == Outcome.OK else row.outcome.replace("_", " ")


def _error(row: ResultRow) -> str:
    return relative_error(row.error_rel) if row.error_rel is not None else NOTHING


def _power(row: ResultRow) -> str:
    return si(row.power_w, "W") if row.power_w is not None else NOTHING


def _quantisation(row: ResultRow) -> str:
    return relative_error(row.quantisation_error) if row.quantisation_error is not None else NOTHING


IDENTITY = (
    Column("Case", "Job, sizes, data and switches", case_detail, case_detail),
    Column(
        "Format",
        "Number format of the inputs, and what shares a scale",
        lambda row: row.format_label,
        lambda row: row.format_label,
    ),
    Column("Implementation", "Who computes it", lambda row: row.implementation, lambda row: row.implementation),
    Column("Regime", "Cache, load and dispatch", lambda row: row.regime, lambda row: row.regime),
    Column("Outcome", "How the case ended when it has no verified result", lambda row: outcome(row) or "ok", outcome),
    Column("Bound", "What limits the case", bound, lambda row: row.bound),
)
FIGURES = (
    _figure("Time", "Median of one launch and half the width of its 95 % interval", timing, lambda row: row.p50_s),
    _figure(
        "Throughput",
        "Useful operations per second",
        lambda row: si(row.flop_s, rate_unit(row.multiplied)) if row.flops else NOTHING,
        lambda row: row.flop_s or None,
    ),
    _figure(
        "Bandwidth",
        "Compulsory bytes per second; busbw of a collective",
        lambda row: bytes_rate(row) if row.compulsory_bytes else NOTHING,
        lambda row: row.bytes_s or None,
    ),
    _figure(
        "Tokens",
        "New tokens of all sequences per second",
        lambda row: tokens_rate(row.tokens_s) if row.tokens_s else NOTHING,
        lambda row: row.tokens_s,
    ),
    _figure(
        "Of spec",
        "Share of the roof by the spec sheet",
        lambda row: percent(row.fractions.spec),
        lambda row: row.fractions.spec,
    ),
    _figure(
        "Of boost",
        "Share of the roof at the maximum clock",
        lambda row: percent(row.fractions.boost),
        lambda row: row.fractions.boost,
    ),
    _figure(
        "At clock",
        "Share of the roof at the clock that the device counted while the case ran",
        lambda row: percent(row.fractions.at_clock),
        lambda row: row.fractions.at_clock,
    ),
    _figure(
        "Empirical",
        EMPIRICAL,
        lambda row: percent(row.fractions.empirical),
        lambda row: row.fractions.empirical,
    ),
    _figure(
        "Clock",
        "Clock that a launch of median length ran at, counted on the device",
        lambda row: si(row.clock_hz, "Hz"),
        lambda row: row.clock_hz,
    ),
    _figure("Power", "Mean of the device's power while samples were taken, sustained", _power, lambda row: row.power_w),
    _figure(
        "Per joule",
        "Useful operations per joule, in sustained windows of 2 s and more",
        lambda row: per_joule(row) if flop_per_j(row) is not None else NOTHING,
        flop_per_j,
    ),
    Column("Error", "Relative error against the reference", _error, lambda row: row.error_rel),
    Column(
        "Quantisation",
        "Relative error of the product that rounding the data to the format costs",
        _quantisation,
        lambda row: row.quantisation_error,
    ),
)
REMARKS = Column("Remarks", "Reasons and what to know before trusting the number", remarks, remarks)

COLUMNS = (*IDENTITY, *FIGURES, REMARKS)
RARE = ("Outcome", "Quantisation", "Tokens", "Power", "Per joule")


def told(columns: Iterable[Column], rows: Sequence[ResultRow]) -> tuple[Column, ...]:
    """The columns without those that only some runs have and ``rows`` do not, such as power, or cases that failed."""
    return tuple(column for column in columns if column.title not in RARE or any(column.sort(row) is not None for row in rows))


def named(*titles: str) -> tuple[Column, ...]:
    """Columns of these titles, in this order."""
    by_title = {column.title: column for column in COLUMNS}
    return tuple(by_title[title] for title in titles)
