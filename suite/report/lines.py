"""Which results a line goes through, and what it is called: by what differs between them and by nothing else."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from suite.case import unusual_data
from suite.report.curves import DASHES, Line
from suite.report.palette import DEVICE_COLOURS
from suite.rows import ResultRow

Field = Callable[[ResultRow], str]


class Member(NamedTuple):
    """The results of one device in a figure of several, with its name and colour."""

    name: str
    colour: str
    rows: tuple[ResultRow, ...]


def lines_of(members: Sequence[Member], fields: Mapping[str, Field]) -> list[Line]:
    """A line for each device and each combination of ``fields`` that occurs.

    Of several devices the colour is the device's, and dashes tell the combinations apart; of one device colours do.
    """
    differing = {name: field for name, field in fields.items() if _differs(members, field)}
    combinations: dict[tuple[str, ...], None] = {}
    groups: dict[tuple[int, tuple[str, ...]], list[ResultRow]] = {}
    for number, member in enumerate(members):
        for row in member.rows:
            combination = tuple(field(row) for field in differing.values())
            combinations.setdefault(combination)
            groups.setdefault((number, combination), []).append(row)
    order = {combination: place for place, combination in enumerate(sorted(combinations))}
    several = len(members) > 1
    found = []
    for (number, combination), rows in sorted(groups.items(), key=lambda each: (each[0][0], order[each[0][1]])):
        member, place = members[number], order[combination]
        name = ", ".join([*([member.name] if several else []), *filter(None, combination)])
        colour = member.colour if several else DEVICE_COLOURS[place % len(DEVICE_COLOURS)]
        turn = place if several else place // len(DEVICE_COLOURS)
        variant = ", ".join(filter(None, combination))
        of_several = (member.name, variant) if several else ("", "")
        found.append(Line(name or member.name, colour, tuple(rows), DASHES[turn % len(DASHES)], *of_several))
    return found


def _differs(members: Sequence[Member], field: Field) -> bool:
    return len({field(row) for member in members for row in member.rows}) > 1


def param(name: str, title: str = "") -> Field:
    """A parameter as a name's part: ``batch 32``; empty where a row has none."""
    return lambda row: f"{title or name.replace('_', ' ')} {row.params[name]}" if name in row.params else ""


def switch(name: str) -> Field:
    """A switch of a case as a name's part."""
    return lambda row: str(row.switches.get(name, ""))


def rest_of(*known: str) -> Field:
    """What else a workload and its switches say beside those that are ``known``: nothing is joined that differs in it."""

    def field(row: ResultRow) -> str:
        left = {name: value for name, value in (*row.params.items(), *row.switches.items()) if name not in known}
        told = [f"{name}={value}" for name, value in sorted(left.items())]
        return " ".join([*unusual_data(row.distribution), *told])

    return field


def implementation_of(row: ResultRow) -> str:
    """Who computed it."""
    return row.implementation


def format_of(row: ResultRow) -> str:
    """The format with its scaling."""
    return row.format_label


def regime_of(row: ResultRow) -> str:
    """Cache, load and dispatch."""
    return row.regime


def evidence_of(row: ResultRow) -> str:
    """Whether it was measured."""
    return row.evidence


def backend_of(row: ResultRow) -> str:
    """Which framework drives the device."""
    return row.backend


def execution_of(row: ResultRow) -> str:
    """Whether the device multiplies the format itself: an emulated one is judged by the roof of another unit."""
    return row.execution


def data_of(row: ResultRow) -> str:
    """What the numbers of the operands are like."""
    return row.distribution


WHO = {"implementation": implementation_of, "format": format_of, "backend": backend_of}
