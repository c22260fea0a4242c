"""The matrix for a terminal: a mark for each program and target, what the marks mean, and the reasons below."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from suite.outcome import Outcome
from suite.report.printable import printable
from suite.show.screen import Screen
from suite.targets.marks import UNSUPPORTED, legend, mark
from suite.targets.names import TARGETS, TRITON, XLA, Target
from suite.targets.reasons import reasons
from suite.targets.record import Compiled
from suite.targets.variables import under_lines

WIDTH = 80
TITLES = {TRITON: "our kernels, by Triton", XLA: "our jobs, by XLA"}
INDENT = "  "


def matrix_lines(cells: Sequence[Compiled], screen: Screen) -> Iterator[str]:
    """At most 80 columns wide."""
    for kind in (TRITON, XLA):
        targets = [target for target in TARGETS if target.kind == kind and any(cell.target == target.name for cell in cells)]
        if targets:
            yield from _table(TITLES[kind], targets, cells, screen)
            yield ""
    for character, meaning in legend(cells):
        yield f"{INDENT}{character}  {meaning}"
    yield ""
    yield from reason_lines(cells, screen)
    for line in under_lines(cells):
        yield from _wrapped(line)


def reason_lines(cells: Sequence[Compiled], screen: Screen) -> Iterator[str]:
    """Each reason once, failures first."""
    for reason in reasons(cells):
        lines = _wrapped(f"{reason.where}: {reason.why}")
        yield from (screen.paint(line, "red") if reason.is_failure else line for line in lines)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(printable(text), WIDTH, initial_indent=INDENT, subsequent_indent=2 * INDENT)


def counts(cells: Sequence[Compiled]) -> str:
    """``288 ok, 92 unsupported``."""
    found = Counter(cell.outcome for cell in cells)
    return ", ".join(f"{found[outcome]} {outcome.value}" for outcome in Outcome if outcome in found)


def _table(title: str, targets: Sequence[Target], cells: Sequence[Compiled], screen: Screen) -> Iterator[str]:
    by_place = {(cell.program, cell.target): cell for cell in cells}
    names = {target.name for target in targets}
    programs = list(dict.fromkeys(cell.program for cell in cells if cell.target in names))
    left = max(len(title), *map(len, programs))
    widths = [max(2, len(target.short)) for target in targets]
    yield screen.paint(f"{title:<{left}}  {_families(targets, widths)}".rstrip(), "bold")
    yield screen.paint(f"{'':<{left}}  {_line([target.short for target in targets], widths)}".rstrip(), "dim")
    for program in programs:
        found = [by_place.get((program, target.name)) for target in targets]
        yield f"{program:<{left}}  {_marks(found, widths, screen)}".rstrip()


def _families(targets: Sequence[Target], widths: Sequence[int]) -> str:
    """A family's name above its first column."""
    first = [
        target.family if not place or targets[place - 1].family != target.family else "" for place, target in enumerate(targets)
    ]
    line = ""
    for place, family in enumerate(first):
        start = sum(widths[:place]) + place
        line = f"{line:<{start}}{family}" if family else line
    return line


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(f"{text:<{width}}" for text, width in zip(texts, widths, strict=True))


def _marks(cells: Sequence[Compiled | None], widths: Sequence[int], screen: Screen) -> str:
    return " ".join(_mark(cell, width, screen) for cell, width in zip(cells, widths, strict=True))


def _mark(cell: Compiled | None, width: int, screen: Screen) -> str:
    text = f"{mark(cell) if cell else '':<{width}}"
    if cell is None:
        return text
    return screen.paint(text, "red") if cell.failed else screen.paint(text, "dim") if mark(cell) == UNSUPPORTED else text
