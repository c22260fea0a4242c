"""The facts of a few cells for a terminal, one line each."""

from collections.abc import Iterator, Sequence

from suite.outcome import Outcome
from suite.report.words import UNKNOWN, percent, si
from suite.show.screen import Screen
from suite.show.table import Column, Row, table
from suite.targets.derived import estimate_of, occupancy_of
from suite.targets.marks import mark
from suite.targets.record import Compiled

COLUMNS = (
    Column("program", tells_apart=True),
    Column("target", tells_apart=True),
    Column(""),
    Column("registers", right=True),
    Column("spilled B", 3, right=True),
    Column("shared B", 1, right=True),
    Column("warps", right=True),
    Column("occupancy", right=True),
    Column("limited by", 4),
    Column("estimate", right=True),
    Column("s", 2, right=True),
    Column("configuration", 5),
)


def facts_lines(cells: Sequence[Compiled], screen: Screen) -> Iterator[str]:
    """Of those that compiled; ``warps`` are those that a unit holds at once."""
    return table(COLUMNS, [_row(cell) for cell in cells if cell.outcome is Outcome.OK], screen)


def _row(cell: Compiled) -> Row:
    held, facts, estimate = occupancy_of(cell), cell.facts, estimate_of(cell)
    return Row(
        (
            cell.program,
            cell.target,
            mark(cell),
            *(str(facts.get(name, "")) for name in ("registers", "spilled_bytes", "shared_bytes")),
            str(held.warps) if held else "",
            percent(held.share) if held else "",
            held.limited_by if held else "",
            _estimate(estimate.flop_s, estimate.of_roof) if estimate else "",
            f"{cell.seconds:.1f}",
            cell.configuration,
        )
    )


def _estimate(flop_s: float | None, of_roof: float | None) -> str:
    if flop_s is None:
        return UNKNOWN
    return f"{si(flop_s, 'FLOP/s')}{f', {percent(of_roof)} of roof' if of_roof is not None else ''}"
