"""What was compiled as a section of an HTML report: the marks in tables, what they mean, the figures and the reasons."""

from collections.abc import Sequence

from suite.report.tags import Html, tag
from suite.report.targets_figure import hover_lines
from suite.report.targets_matrix import ABOUT, TITLE, Matrix, matrices
from suite.targets.marks import legend, mark
from suite.targets.reasons import reasons
from suite.targets.record import Compiled
from suite.targets.variables import under_lines


def targets_section(cells: Sequence[Compiled]) -> Html:
    """Every cell's facts stand in its title, and for programs in the page's data."""
    meanings = (tag("li", tag("b", character), f" {meaning}") for character, meaning in legend(cells))
    told = (tag("li", f"{reason.where}: {reason.why}") for reason in reasons(cells))
    variables = [tag("li", line) for line in under_lines(cells)]
    return tag(
        "article",
        tag("h2", TITLE),
        tag("p", ABOUT),
        *(part for matrix in matrices(cells) for part in (tag("h3", matrix.title), _table(matrix))),
        *([tag("ul", *variables)] if variables else []),
        tag("ul", *meanings),
        tag("h3", "Why cells are empty"),
        tag("ul", *told),
    )


def _table(matrix: Matrix) -> Html:
    head = tag("tr", tag("th", "Program", scope="col"), *(tag("th", name, scope="col") for name in matrix.targets))
    rows = (tag("tr", tag("th", program, scope="row"), *map(_cell, cells)) for program, cells in matrix.rows)
    table = tag("table", tag("thead", head), tag("tbody", *rows))
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=matrix.title)


def _cell(cell: Compiled | None) -> Html:
    return tag("td", mark(cell), title="; ".join(hover_lines(cell))) if cell else tag("td", "")
