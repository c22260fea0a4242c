"""The columns of a table of implementations side by side."""

from collections.abc import Callable
from typing import NamedTuple

from suite.report.contest import Way
from suite.report.words import percent


class Column(NamedTuple):
    """Its heading, what it means, and the text of a cell."""

    title: str
    meaning: str
    text: Callable[[Way], str]
    numeric: bool = True


COLUMNS = (
    Column("By", "The implementation and the backend that ran it", lambda way: way.name, numeric=False),
    Column("Speed", "Relative to the first, with its 95 % interval", lambda way: way.speed.words),
    Column("Time", "Median of one launch, and half the width of its 95 % interval", lambda way: way.time),
    Column("Rate", "Useful operations per second, or compulsory bytes where there is no arithmetic", lambda way: way.rate),
    Column("Of spec", "Share of the roof by the spec sheet", lambda way: percent(way.row.fractions.spec)),
    Column("At clock", "The same at the clock that the device counted", lambda way: percent(way.row.fractions.at_clock)),
    Column("Marks", "What to know before trusting the number", lambda way: way.marks, numeric=False),
    Column("Run", "The run that it was measured in", lambda way: way.row.run, numeric=False),
)
