"""Levers of batch size in a Markdown report: what each line of the page's figure says, and its numbers."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from suite.report.lever import ABOUT, levers, notes
from suite.rows import ResultRow

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]
Text = Callable[[str], str]


def lever_blocks(rows: Sequence[ResultRow], label: str, table: Table, text: Text) -> Iterator[str]:
    """Blocks of Markdown; ``table`` and ``text`` are the report's: they escape cells and words."""
    found = levers(rows)
    if not found:
        return
    yield f"### Batch size as a lever of {text(label)}"
    yield text(ABOUT)
    for lever in found:
        yield f"#### {text(lever.title)}"
        yield "\n".join(f"- {text(note)}" for note in notes(lever))
        titles = ("M", *(f"{line.number}: {line.name}" for line in lever.lines))
        yield table(titles, ((str(m), *lever.cells(m)) for m in lever.sizes))
