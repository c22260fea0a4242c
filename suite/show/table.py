"""A table that fits: columns that say or matter least are left out until the lines are no wider than the screen."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from suite.report.printable import WHOLE_LENGTH, clipped, printable
from suite.report.words import UNKNOWN
from suite.show.screen import Screen

GAP = "  "
INDENT = "  "
LEAST_REMARK = 24  # characters that must be free beside a row before its remark is put there


class Column(NamedTuple):
    """``rank`` 0 always stays; of the others the highest goes first when the screen is narrow.

    One that ``tells_apart`` stays wherever its rows differ, whatever its rank.
    """

    title: str
    rank: int = 0
    right: bool = False
    tells_apart: bool = False


class Row(NamedTuple):
    """One line's cells, a remark that follows them or stands beneath in as many lines as it takes, and the style of the line.

    A remark is not shortened: whoever puts a stored text into one clips that, so that what follows it is not lost.
    """

    cells: tuple[str, ...]
    remark: str = ""
    style: str = ""


class Fitted(NamedTuple):
    """Cells that can be printed, the width of each column that is shown, and the columns that were left out for the screen."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    widths: dict[int, int]
    left_out: Sequence[int]

    @property
    def titles_left_out(self) -> tuple[str, ...]:
        """Columns whose figures are not to be seen."""
        return tuple(self.columns[index].title for index in self.left_out if self._same(index) is None)

    @property
    def said_once(self) -> tuple[tuple[str, str], ...]:
        """Title and cell of the columns that were left out because every row has the same."""
        return tuple(
            (self.columns[index].title, same) for index in self.left_out if (same := self._same(index)) not in (None, UNKNOWN)
        )

    def _same(self, index: int) -> str | None:
        """What every row has in a column of names; ``UNKNOWN`` where no row has anything to say."""
        seen = {row.cells[index] for row in self.rows}
        if seen <= {"", UNKNOWN}:
            return UNKNOWN
        return next(iter(seen)) if self.columns[index].tells_apart and len(seen) == 1 else None

    def lines(self, screen: Screen) -> Iterator[str]:
        """Heading first."""
        yield screen.paint(_line([column.title for column in self.columns], self.columns, self.widths), "dim")
        for row in self.rows:
            yield from _row(row, _cells(row, self.columns, self.widths), screen)


def table(columns: Sequence[Column], rows: Sequence[Row], screen: Screen) -> Iterator[str]:
    """Lines of the table, heading first; a column that no row fills is left out, a long remark stands beneath."""
    return fitted(columns, rows, screen).lines(screen)


def fitted(columns: Sequence[Column], rows: Sequence[Row], screen: Screen) -> Fitted:
    """Choose the columns; what no row fills is left out on every screen and not missed."""
    rows = [
        Row(tuple(clipped(printable(cell)) for cell in row.cells), clipped(printable(row.remark), WHOLE_LENGTH), row.style)
        for row in rows
    ]
    cells = [[row.cells[index] for row in rows] for index in range(len(columns))]
    widths = {
        index: max(len(column.title), *map(len, cells[index]), 0)
        for index, column in enumerate(columns)
        if index == 0 or any(cells[index])
    }
    droppable = [index for index in widths if _may_go(columns[index], cells[index])]
    droppable.sort(key=lambda index: (_says_nothing(cells[index]), columns[index].rank))
    left_out: list[int] = []
    whole = dict(widths)
    while screen.width is not None and _length(widths) > screen.width and droppable:
        left_out.append(droppable.pop())
        del widths[left_out[-1]]
    for index in reversed(left_out):  # a narrow one may fit where a wide one that matters more did not
        if screen.width is not None and _length(widths) + len(GAP) + whole[index] <= screen.width:
            widths[index] = whole[index]
    return Fitted(columns, rows, {index: widths[index] for index in sorted(widths)}, sorted(whole.keys() - widths.keys()))


def _may_go(column: Column, cells: Sequence[str]) -> bool:
    if column.tells_apart:
        return column.rank > 0 and len(set(cells)) == 1
    return column.rank > 0 or (_says_nothing(cells) and column.right)


def _says_nothing(cells: Sequence[str]) -> bool:
    return set(cells) <= {"", UNKNOWN}


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
