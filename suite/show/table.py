"""A table that fits: columns that matter least are left out until the lines are no wider than the screen."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from suite.report.printable import clipped, printable
from suite.show.screen import Screen

GAP = "  "
INDENT = "  "
LEAST_REMARK = 24  # characters that must be free beside a row before its remark is put there


class Column(NamedTuple):
    """``rank`` 0 always stays; of the others the highest goes first when the screen is narrow."""

    title: str
    rank: int = 0
    right: bool = False


class Row(NamedTuple):
    """One line's cells, a remark that follows them or stands beneath, and the style of the line."""

    cells: tuple[str, ...]
    remark: str = ""
    style: str = ""


def table(columns: Sequence[Column], rows: Sequence[Row], screen: Screen) -> Iterator[str]:
    """Lines of the table, heading first; a column that no row fills is left out, a long remark is clipped."""
    rows = [
        Row(tuple(clipped(printable(cell)) for cell in row.cells), clipped(printable(row.remark)), row.style) for row in rows
    ]
    kept = _fit(columns, rows, screen.width)
    widths = {index: _width(columns, rows, index) for index in kept}
    yield screen.paint(_line([column.title for column in columns], columns, widths), "dim")
    for row in rows:
        yield from _row(row, _cells(row, columns, widths), screen)


def _fit(columns: Sequence[Column], rows: Sequence[Row], width: int | None) -> list[int]:
    kept = [index for index in range(len(columns)) if index == 0 or any(row.cells[index] for row in rows)]
    while width is not None and _total(columns, rows, kept) > width:
        droppable = [index for index in kept if columns[index].rank > 0]
        if not droppable:
            break
        kept.remove(max(droppable, key=lambda index: columns[index].rank))
    return kept


def _total(columns: Sequence[Column], rows: Sequence[Row], kept: Sequence[int]) -> int:
    return len(INDENT) + sum(_width(columns, rows, index) + len(GAP) for index in kept) - len(GAP)


def _width(columns: Sequence[Column], rows: Sequence[Row], index: int) -> int:
    return max(len(columns[index].title), *(len(row.cells[index]) for row in rows), 0)


def _line(cells: Sequence[str], columns: Sequence[Column], widths: dict[int, int]) -> str:
    aligned = (cells[i].rjust(width) if columns[i].right else cells[i].ljust(width) for i, width in widths.items())
    return (INDENT + GAP.join(aligned)).rstrip()


def _cells(row: Row, columns: Sequence[Column], widths: dict[int, int]) -> str:
    """The line of a row.  Beside figures a remark keeps out of the empty columns behind the last; without any it follows."""
    line = _line(row.cells, columns, widths)
    figures = any(columns[index].right and row.cells[index] for index in widths)
    return line.ljust(_length(widths)) if row.remark and figures else line


def _length(widths: dict[int, int]) -> int:
    return len(INDENT) + sum(widths.values()) + len(GAP) * (len(widths) - 1)


def _row(row: Row, line: str, screen: Screen) -> Iterator[str]:
    paint = (lambda text: screen.paint(text, row.style)) if row.style else str
    free = None if screen.width is None else screen.width - len(line) - len(GAP)
    if not row.remark or free is None or len(row.remark) <= free:
        yield paint(line + GAP * bool(row.remark) + row.remark)
        return
    yield paint(line.rstrip())
    room = max(LEAST_REMARK, (screen.width or 0) - 2 * len(INDENT))
    yield from (paint(2 * INDENT + part) for part in textwrap.wrap(row.remark, room))
