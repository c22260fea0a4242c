"""What was compiled in a Markdown report."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from suite.report.targets_matrix import ABOUT, TITLE, matrices
from suite.targets.marks import legend, mark
from suite.targets.reasons import reasons
from suite.targets.record import Compiled
from suite.targets.variables import under_lines

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]
Text = Callable[[str], str]


def targets_blocks(cells: Sequence[Compiled], table: Table, text: Text) -> Iterator[str]:
    """Blocks of Markdown; ``table`` and ``text`` are the report's: they escape cells and words."""
    if not cells:
        return
    yield f"## {TITLE}"
    yield text(ABOUT)
    for matrix in matrices(cells):
        yield f"### {matrix.title}"
        marks = ([program, *(mark(cell) if cell else "" for cell in row)] for program, row in matrix.rows)
        yield table(("Program", *matrix.targets), marks)
    yield "\n".join(f"- {text(character)}: {meaning}" for character, meaning in legend(cells))
    told = [f"- {text(f'{reason.where}: {reason.why}')}" for reason in reasons(cells)]
    if variables := under_lines(cells):
        yield "\n".join(f"- {text(line)}" for line in variables)
    if told:
        yield "### Why cells are empty"
        yield "\n".join(told)
