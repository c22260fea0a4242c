"""Devices side by side: which of several devices computes a case fastest, a line a case."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from dashboard.contests import cell_text, lead_columns, short_titles
from dashboard.frames import frame_with_downloads
from dashboard.mark_codes import codes, legend
from dashboard.selection import Selection
from dashboard.shelf import Device
from dashboard.text import plain
from suite.case import unusual_data
from suite.outcome import Evidence, Outcome
from suite.report.contest import TELLING, untold
from suite.report.speed import Speed, speed
from suite.report.words import counted, marks, rate_unit, si, timing, workload_title
from suite.rows import ResultRow

TITLE = "Devices side by side"
ABOUT = (
    "The same case on several devices, each with its fastest implementation: how many times as fast the first is as the next, "
    "with the 95 % interval. What that does not tell apart, or less than 1 %, is called alike; where a result in doubt reads "
    "faster than the first, it is in doubt which is fastest. What was measured and what was simulated are cases of their own."
)
MOST_LINES = 500  # the largest cases; filters reach the others


class Entrant(NamedTuple):
    """A device with its fastest verified result of a case; one in doubt only where it has no other.

    ``reads_s`` is the shortest median of any, in doubt or not.
    """

    name: str
    row: ResultRow
    reads_s: float


class Race(NamedTuple):
    """One case on two devices or more, the fastest first, those in doubt behind the others."""

    entrants: tuple[Entrant, ...]

    @property
    def title(self) -> str:
        row = self.entrants[0].row
        kind = [] if row.evidence == Evidence.MEASURED else [row.evidence]
        return ", ".join([f"{workload_title(row)} {row.format_label}", row.regime, *unusual_data(row.distribution), *kind])

    @property
    def lead(self) -> Speed | None:
        first, behind = (each.row for each in self.entrants[:2])
        return speed(first, behind)

    @property
    def is_alike(self) -> bool:
        """Whether the first two cannot be told from each other."""
        lead = self.lead
        return lead is None or lead.interval is None or lead.interval[0] <= 1 or lead.times < 1 + TELLING

    @property
    def fastest(self) -> str:
        """The device, or two that are alike; where one in doubt reads faster than a first that is not, it is in doubt."""
        first, behind = self.entrants[:2]
        faster = [each.name for each in self.entrants[1:] if each.reads_s < _time(first.row)]
        if untold(first.row) or faster:
            return f"in doubt: {', '.join([*faster, first.name])}"
        return f"alike: {first.name}, {behind.name}" if self.is_alike and not untold(behind.row) else first.name


def devices_side_by_side(selection: Selection, rows: Mapping[Device, Sequence[ResultRow]], key: str) -> None:
    """Draw the cases that several of the devices have timed; nothing where there are none."""
    found = races({selection.names[device]: own for device, own in rows.items()})
    if not found:
        return
    st.subheader(TITLE)
    st.caption(plain(ABOUT, 600))
    titles, shared = short_titles([race.title for race in found[:MOST_LINES]])
    if shared:
        st.caption(plain(f"The same in all of them: {shared}."))
    lines = [_line(race, title) for race, title in zip(found, titles, strict=False)]
    frame = pd.DataFrame(lines).dropna(axis="columns", how="all")
    legend(race.entrants[0].row for race in found[:MOST_LINES])
    frame_with_downloads(frame, f"{key}-devices", f"Fastest device of {counted(len(frame), 'case')}", _columns())
    if len(found) > MOST_LINES:
        st.caption(plain(f"{len(found) - MOST_LINES} smaller cases are not shown: choose fewer with the filters."))


def races(rows: Mapping[str, Sequence[ResultRow]]) -> list[Race]:
    """Every case that two devices or more have timed, by devices' names: the largest first."""
    cases: dict[tuple[str, ...], dict[str, list[ResultRow]]] = {}
    for name, own in rows.items():
        for row in own:
            if row.p50_s and row.outcome == Outcome.OK:
                case = (row.workload_key, row.distribution, row.evidence, row.regime)
                cases.setdefault(case, {}).setdefault(name, []).append(row)
    found = [Race(tuple(_ranked(each))) for each in cases.values() if len(each) > 1]
    return sorted(found, key=lambda race: (-race.entrants[0].row.flops, -race.entrants[0].row.compulsory_bytes, race.title))


def _ranked(devices: Mapping[str, Sequence[ResultRow]]) -> Iterator[Entrant]:
    best = [Entrant(name, min(rows, key=_order), min(map(_time, rows))) for name, rows in devices.items()]
    yield from sorted(best, key=lambda each: _order(each.row))


def _order(row: ResultRow) -> tuple[bool, float]:
    return untold(row), _time(row)


def _time(row: ResultRow) -> float:
    return row.p50_s or 0.0


def _line(race: Race, title: str) -> dict[str, Any]:
    (first, behind), lead = race.entrants[:2], race.lead
    low, high = lead.interval if lead and lead.interval else (None, None)
    return {
        "Case": cell_text(title),
        "Fastest": cell_text(race.fastest),
        "Marks": codes(first.row),
        "By": cell_text(first.row.implementation),
        "Time": timing(first.row),
        "Bandwidth": si(first.row.bytes_s, "B/s") if first.row.bytes_s else None,
        "Rate": si(first.row.flop_s, rate_unit(first.row.multiplied)) if first.row.flop_s else None,
        "Next": cell_text(f"in doubt: {behind.name}" if untold(behind.row) else behind.name),
        "Over next": lead.times if lead else None,
        "From": low,
        "To": high,
        "Every device": cell_text("; ".join(f"{each.name} {timing(each.row)}" for each in race.entrants)),
        "Remarks": cell_text("; ".join(marks(first.row))) or None,
    }


def _columns() -> dict[str, Any]:
    text = st.column_config.TextColumn
    return {
        "Case": text(pinned=True, help="Sizes, format and regime"),
        "Fastest": text(help="The device; several where they are alike, or where one in doubt reads faster"),
        "By": text(help="The implementation that is fastest there"),
        "Time": text(help="Median of one launch and half the width of its 95 % interval"),
        "Bandwidth": text(help="Compulsory bytes per second"),
        "Rate": text(help="Useful operations per second"),
        "Next": text(help="The fastest of the other devices"),
        **lead_columns(),
    }
