"""The text that a point of a figure shows: the whole case.  Plotly reads it as HTML, so every value is escaped."""

import textwrap
from html import escape

from suite.outcome import Outcome
from suite.report.method import OUTCOMES
from suite.report.printable import clipped, printable
from suite.report.words import (
    UNKNOWN,
    bytes_rate,
    case_title,
    cycles,
    duration,
    marks,
    percent,
    rate_unit,
    relative_error,
    si,
    timing,
)
from suite.rows import ResultRow

# By the beginning of a mark: why it matters.
EXPLAINED = {
    "one sample": "nothing says how far the next would differ",
    "no interval": "nothing says how far the next would differ",
    "± not resolved": "the interval is wider than twice the median",
    "in cycles": "times step to and fro with the clock; a launch takes the same cycles at each of its steps",
    "not converged": "the interval did not become as narrow as asked in the time allowed",
    "not steady": "clock and power had not settled before sampling",
    "contended": "others used the device meanwhile",
    "throttled": "the driver held the clock down",
    "above the derived peak": "by 2 % at most, which readings are good to: the peak is an estimate, which no maker declared",
    "emulated": "the device has no unit for the format and computes it with another",
    "simulated": "made up by a replay or a planted fault, never to be compared with what was measured",
    "imported": "from the log of another program, not measured here",
}
_LONGEST = 160  # characters of a line: names and parameters come from a file


def hover_text(row: ResultRow, columns: int | None = None) -> str:
    """Lines joined by ``<br>``, the case's name in bold; nothing in it but that is markup.

    With ``columns``, for a small figure, which would cut off more: lines of at most so many characters, without what is not
    known.
    """
    lines = _lines(row) if columns is None else _known_lines(row)
    title, *rest = [_wrapped(clipped(printable(line), _LONGEST), columns) for line in lines]
    return "<br>".join([f"<b>{title}</b>", *rest])


def _wrapped(line: str, columns: int | None) -> str:
    return "<br>".join(map(escape, textwrap.wrap(line, columns))) if columns else escape(line)


def known_by(row: ResultRow) -> list[str | int]:
    """What a point of several stores is known by, whose result ids may be the same: its run, case and slot."""
    return [row.run, row.case_key, row.device_slot]


def explained(mark: str) -> str:
    """A mark with what it means."""
    meaning = next((text for name, text in EXPLAINED.items() if mark.startswith(name)), "")
    return f"{mark}: {meaning}" if meaning and ":" not in mark else f"{mark} ({meaning})" if meaning else mark


def _lines(row: ResultRow) -> list[str]:
    if row.outcome != Outcome.OK:
        meaning = OUTCOMES.get(row.outcome, "")
        return [case_title(row), f"{row.outcome.replace('_', ' ')}: {meaning}", *([row.reason] if row.reason else [])]
    unit = rate_unit(row.multiplied)
    return [
        case_title(row),
        f"{row.bound or UNKNOWN} bound, {row.execution} by {row.implementation}, {row.backend}",
        f"{si(row.flop_s, unit)}, {bytes_rate(row)} at {row.arithmetic_intensity:.4g} {unit.replace('/s', '/B')}",
        f"p50 {timing(row)}{_interval(row)}",
        *([f"{cycles(row)} cycles"] if row.p50_cycles else []),
        _fractions(row),
        f"clock {si(row.clock_hz, 'Hz')}, power {si(row.power_w, 'W')}",
        _errors(row),
        ", ".join([row.outcome, *(["converged"] if row.converged else [])]),
        *map(explained, marks(row)),
    ]


def _known_lines(row: ResultRow) -> list[str]:
    """Fewer of them: what the case is, how fast, of which roofs, and what is to be known before trusting it."""
    if row.outcome != Outcome.OK:
        return _lines(row)
    unit = rate_unit(row.multiplied)
    rates = [si(row.flop_s, unit)] if row.flops else []
    shares = [
        f"{percent(value)} {name.replace('_', ' ')}" for name, value in row.fractions._asdict().items() if value is not None
    ]
    return [
        case_title(row),
        f"{row.bound or UNKNOWN} bound, {row.execution} by {row.implementation}, {row.backend}",
        ", ".join([*rates, *([bytes_rate(row)] if row.bytes_s else [])]),
        f"p50 {timing(row)}",
        f"of roofline: {', '.join(shares)}" if shares else "no share of a roof is known",
        *map(explained, marks(row)),
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
