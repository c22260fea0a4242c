"""What other tools measured of the same messages, beneath a run's own results: beside them, and not compared."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from suite.outcome import Evidence, Outcome
from suite.report.printable import printable
from suite.report.words import duration, message_size, si
from suite.rows import ResultRow
from suite.show.screen import Screen
from suite.show.table import Column, Row, table

JOB = "collective"
COLUMNS = (
    Column("message"),
    Column("evidence"),
    Column("by"),
    Column("device", rank=1),
    Column("p50", right=True),
    Column("busbw", right=True),
)
TITLE = "the same messages, measured here and imported: not compared"
Message = tuple[Any, ...]


class Source(Protocol):
    """A store's reader."""

    def results(self, run: str | None = None, *, job: str, evidence: str) -> Sequence[ResultRow]: ...


class _Shown(NamedTuple):
    title: str
    own: list[ResultRow]
    theirs: list[ResultRow]


def imported_lines(source: Source, rows: Sequence[ResultRow], screen: Screen) -> Iterator[str]:
    """A table of the messages of which the store has both; nothing where there are none."""
    own = [row for row in rows if row.evidence == Evidence.MEASURED and _is_shown(row)]
    if not own:
        return
    theirs = [row for row in source.results(job=JOB, evidence=Evidence.IMPORTED.value) if _is_shown(row)]
    shown = [each for each in _by_message(own, theirs) if each.own and each.theirs]
    if shown:
        yield ""
        yield screen.paint(TITLE, "bold")
        yield from table(COLUMNS, [line for each in shown for line in _lines(each)], screen)


def _is_shown(row: ResultRow) -> bool:
    return row.job == JOB and bool(row.p50_s) and "world_size" in row.params


def _by_message(own: Iterable[ResultRow], theirs: Iterable[ResultRow]) -> Iterable[_Shown]:
    found: dict[Message, _Shown] = {}
    for row in own:
        found.setdefault(_message(row), _Shown(_title(row), [], [])).own.append(row)
    for row in theirs:
        if _message(row) in found:
            found[_message(row)].theirs.append(row)
    return found.values()


def _message(row: ResultRow) -> Message:
    return (*(row.params[name] for name in ("op", "message_bytes", "world_size")), row.format, row.switches.get("in_place"))


def _title(row: ResultRow) -> str:
    form = "" if row.switches.get("in_place") else ", out of place"
    return (
        f"{row.params['op']} {row.format} of {message_size(row.params['message_bytes'])} over {row.params['world_size']}{form}"
    )


def _lines(shown: _Shown) -> Iterator[Row]:
    for index, row in enumerate((*shown.own, *shown.theirs)):
        way = " ".join(str(row.switches[name]) for name in ("algo", "proto") if row.switches.get(name) not in (None, "library"))
        by = f"{row.backend} {row.implementation} {way}".rstrip()
        unchecked = "not checked" if row.outcome == Outcome.UNCHECKED else ""
        busbw = si(row.bytes_s, "B/s") if row.compulsory_bytes else ""
        cells = (shown.title if index == 0 else "", row.evidence, printable(by), row.device, duration(row.p50_s), busbw)
        yield Row(cells, unchecked)
