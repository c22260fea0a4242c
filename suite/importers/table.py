"""The rows of a table, put together again where messages of a library ran into them."""

from dataclasses import dataclass, field

from suite.importers.rows import CollectiveRow
from suite.importers.table_layout import Layout, are_values, begins_row, cells, of_heading, of_row
from suite.importers.table_values import row_of
from suite.importers.text_lines import Line


@dataclass
class Table:
    """Takes lines one by one; ``rows`` has two of them for a line with both halves.

    ``lines`` counts whole rows as printed, ``cut`` what was begun and never finished.
    """

    layout: Layout | None = None
    headings: int = 0
    rows: list[CollectiveRow] = field(default_factory=list)
    lines: int = 0
    cut: int = 0
    split: int = 0
    repeated: int = 0
    foreign: str | None = None  # the heading of a leading column that the tool does not print
    _above: str = ""
    _words: list[str] = field(default_factory=list)
    _seen: set[tuple[str, ...]] = field(default_factory=set)
    _width: int = 0

    def take(self, line: Line) -> bool:
        """Read one line; false where it is not of the table."""
        layout = of_heading(line.text, self._above)
        if layout:
            self._abandon()
            self.layout, self.headings = layout, self.headings + 1
            self._width = len(line.text.rstrip())
            self.foreign = line.text.split()[0] if layout.leading and "#" not in line.text.split()[0] else None
        self._above = line.text
        return bool(layout) or self._row(line)

    def close(self) -> None:
        """No line follows."""
        self._abandon()

    def _row(self, line: Line) -> bool:
        words = line.text.split()
        if begins_row(words, self.layout.leading if self.layout else 0):
            self._abandon()
            self._words = words
            whole = line.closed or not self._width or len(line.text.rstrip()) >= self._width
            if whole and self._finish():
                self._width = len(line.text.rstrip())
            return True
        if not are_values(words):
            return False
        if self._words:
            self._words += words
            if self._finish():
                self.split += 1
        else:
            self.cut += 1  # the end of a row whose beginning is not here
        return True

    def _finish(self) -> bool:
        layout = self.layout or of_row(self._words)
        found = cells(layout, self._words) if layout else None
        if layout is None or found is None:
            return False
        described, halves = found
        if tuple(self._words) in self._seen:  # two processes of one launcher, or a log that was copied twice
            self.repeated += 1
        else:
            self.rows += [row_of(described, half, placed) for half, placed in zip(halves, layout.in_place, strict=True)]
            self.lines += 1
        self._seen.add(tuple(self._words))
        self._words = []
        return True

    def _abandon(self) -> None:
        if self._words:
            self.cut += 1
        self._words = []
