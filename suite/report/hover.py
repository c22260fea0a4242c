"""The text that a point of the roofline shows: the whole case.  Plotly reads it as HTML, so every value is escaped."""

from html import escape

from suite.report.words import UNKNOWN, bytes_rate, case_title, duration, marks, percent, rate_unit, relative_error, si, timing
from suite.rows import ResultRow


def hover_text(row: ResultRow) -> str:
    """Lines joined by ``<br>``, the case's name in bold; nothing in it but that is markup."""
    title, *rest = [escape(line) for line in _lines(row)]
    return "<br>".join([f"<b>{title}</b>", *rest])


def _lines(row: ResultRow) -> list[str]:
    unit = rate_unit(row.format)
    return [
        case_title(row),
        f"{row.bound or UNKNOWN} bound",
        f"{si(row.flop_s, unit)}, {bytes_rate(row)} at {row.arithmetic_intensity:.4g} {unit.replace('/s', '/B')}",
        f"p50 {timing(row)}{_interval(row)}",
        _fractions(row),
        f"clock {si(row.clock_hz, 'Hz')}, power {si(row.power_w, 'W')}",
        _errors(row),
        ", ".join([row.outcome, "converged" if row.converged else "", *marks(row)]).replace(", ,", ",").strip(", "),
    ]


def _interval(row: ResultRow) -> str:
    if row.interval_s is None:
        return ""
    low, high = row.interval_s
    return f" (95 %: {duration(low)} to {duration(high)})"


def _fractions(row: ResultRow) -> str:
    shares = [f"{name.replace('_', ' ')} {percent(value)}" for name, value in row.fractions._asdict().items()]
    return "of roofline: " + ", ".join(shares)


def _errors(row: ResultRow) -> str:
    allowed = f" (tolerance {row.tolerance:.1e})" if row.tolerance is not None and row.error_rel is not None else ""
    rounded = f", quantisation error {relative_error(row.quantisation_error)}" if row.quantisation_error is not None else ""
    return f"error {relative_error(row.error_rel)}{allowed}{rounded}"
