"""The columns of a precision ladder's table: what a format gives, what it costs, and how it was computed."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from suite.report.columns import NOTHING
from suite.report.ladder import Ladder, Rung
from suite.report.words import per_joule, percent, rate_unit, relative_error, si, timing


class Column(NamedTuple):
    """A column of a ladder's table: its heading, what it means, the text of a cell and what sorts it."""

    title: str
    meaning: str
    text: Callable[[Rung], str]
    sort: Callable[[Rung], float | str | None]
    numeric: bool = True


def columns(ladder: Ladder) -> tuple[Column, ...]:
    """Those that any rung fills, the format's name first."""
    return tuple(
        column
        for column in _columns(ladder)
        if not column.numeric or any(column.sort(rung) is not None for rung in ladder.rungs)
    )


def _columns(ladder: Ladder) -> Iterator[Column]:
    yield Column("Format", "Number format, and what shares a scale", lambda rung: rung.name, lambda rung: rung.number, False)
    if len({(rung.row.implementation, rung.row.backend) for rung in ladder.rungs}) > 1:
        yield Column("By", "Who computes it", lambda rung: rung.by, lambda rung: rung.by, False)
    yield Column(
        f"Over {ladder.base}",
        f"Speed relative to the fastest {ladder.base} of the same shape, regime and data, and its 95 % interval",
        lambda rung: NOTHING if rung.speed is None else rung.speed.words,
        lambda rung: rung.speed.times if rung.speed else None,
    )
    yield Column(
        "Time",
        "Median of one launch and half the width of its 95 % interval",
        lambda rung: timing(rung.row),
        lambda rung: rung.row.p50_s,
    )
    for kind in ladder.distributions:
        yield _error_column(kind)
    yield Column("Rate", "Useful operations per second", _rate, lambda rung: rung.row.flop_s)
    yield Column(
        "Of spec",
        "Share of the roof by the spec sheet",
        lambda rung: percent(rung.row.fractions.spec),
        lambda rung: rung.row.fractions.spec,
    )
    yield Column("Bound", "What limits it", lambda rung: rung.row.bound or "unknown", lambda rung: rung.row.bound, False)
    yield Column(
        "Execution",
        "Whether the device multiplies the format itself, and the unit that multiplied",
        lambda rung: rung.execution,
        lambda rung: rung.execution,
        False,
    )
    yield Column(
        "Per joule",
        "Useful operations per joule, in sustained windows of 2 s and more",
        _per_joule,
        lambda rung: rung.flop_per_j,
    )
    yield Column("Marks", "What to know before trusting the number", lambda rung: rung.marks, lambda rung: rung.marks, False)


def _error_column(kind: str) -> Column:
    return Column(
        f"Error, {kind}",
        f"Quantisation error on {kind} data: relative error of the product that rounding the data costs",
        lambda rung: relative_error(rung.errors[kind]) if kind in rung.errors else NOTHING,
        lambda rung: rung.errors.get(kind),
    )


def _rate(rung: Rung) -> str:
    return si(rung.row.flop_s, rate_unit(rung.row.multiplied))


def _per_joule(rung: Rung) -> str:
    return NOTHING if rung.flop_per_j is None else per_joule(rung.row)
