"""Tables for a terminal or a log."""

from collections import Counter
from collections.abc import Sequence

from tests.peers.record import Record, Verdict

NOTHING = "-"
NAMED_AT_MOST = 3  # rows with the same note


def render(record: Record, shows: str, headings: Sequence[str], foot: Sequence[str] = ()) -> str:
    """A part's rows under its headings, notes and remarks beneath, and how many rows came out how."""
    lines = [[row.name, *row.cells, row.verdict.value] for row in record.rows]
    lines.insert(0, ["", *headings, ""])
    widths = [max(len(line[i]) for line in lines if i < len(line)) for i in range(max(map(len, lines)))]
    body = ["  ".join(_aligned(line, widths)).rstrip() for line in lines]
    remarks = [f"  {line}" for line in (*_notes(record), *foot)]
    states = {"did not finish": not record.finished, "tiny: the figures mean nothing": bool(record.about.get("tiny"))}
    stated = "".join(f" ({text})" for text, holds in states.items() if holds)
    return "\n".join([f"{record.part}: {shows}{stated}", *body, *remarks, tally(record)])


def tally(record: Record) -> str:
    """``agreement: 9 pass, 1 absent``: every verdict that occurred."""
    counts = Counter(row.verdict for row in record.rows)
    return f"{record.part}: " + (", ".join(f"{counts[each]} {each.value}" for each in Verdict if counts[each]) or "nothing")


def number(value: float | None, scale: float = 1.0, digits: int = 4) -> str:
    """``digits`` significant digits of ``value * scale``; a dash where there is none."""
    return NOTHING if value is None else f"{value * scale:.{digits}g}"


def percent(value: float | None, digits: int = 2) -> str:
    return NOTHING if value is None else f"{value:+.{digits}%}"


def _notes(record: Record) -> list[str]:
    """Each note once, after the names of the rows that have it; many rows are counted."""
    rows: dict[str, list[str]] = {}
    for row in record.rows:
        if row.note:
            rows.setdefault(row.note, []).append(row.name)
    named = {note: ", ".join(names) if len(names) <= NAMED_AT_MOST else f"{len(names)} rows" for note, names in rows.items()}
    return [f"{names}: {note}" for note, names in named.items()]


def _aligned(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Names to the left, figures to the right."""
    return [
        cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths, strict=False))
    ]
