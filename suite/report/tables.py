"""The tables of the HTML report."""

from collections.abc import Iterable, Sequence

from suite.outcome import Outcome
from suite.report.columns import FIGURES, IDENTITY, Column
from suite.report.system import Group
from suite.report.tags import Html, tag
from suite.report.words import doubtful, remarks, variation, workload_title
from suite.rows import ResultRow

SHOWN = (*IDENTITY, *FIGURES)


def results_table(rows: Sequence[ResultRow], caption: str, identity: str) -> Html:
    """Every case, sortable by any column; a case without a time has its reason where the figures would be, and what
    puts a figure in doubt stands under the case's name, where it is seen whatever is scrolled away.

    The wrapper scrolls sideways where the screen is narrower than the table.
    """
    head = tag("tr", *(_heading(column) for column in SHOWN))
    table = tag(
        "table",
        tag("caption", caption),
        tag("thead", head),
        tag("tbody", *(_row(row) for row in rows)),
        class_="results sortable",
        id=identity,
    )
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=caption)


def _heading(column: Column) -> Html:
    button = tag("button", column.title, type="button", title=column.meaning)
    return tag("th", button, scope="col", class_="number" if column.numeric else None)


def _row(row: ResultRow) -> Html:
    if row.p50_s is None:
        reason = tag("td", remarks(row), colspan=len(FIGURES), class_="reason")
        cells, remark = [*(_cell(column, row) for column in IDENTITY[1:]), reason], ""
    else:
        cells, remark = [_cell(column, row) for column in SHOWN[1:]], remarks(row)
    name = tag("th", workload_title(row), *_below("variation", variation(row)), *_below("remark", remark), scope="row")
    return tag("tr", name, *cells, class_=_row_class(row))


def _below(kind: str, text: str) -> list[Html]:
    return [tag("span", text, class_=kind)] if text else []


def _cell(column: Column, row: ResultRow) -> Html:
    return tag("td", column.text(row), class_=_cell_class(column, row), data_sort=_sort_value(column, row))


def _row_class(row: ResultRow) -> str | None:
    if row.outcome != Outcome.OK:
        return "failed"
    return "doubtful" if doubtful(row) else None


def _cell_class(column: Column, row: ResultRow) -> str | None:
    if column.title == "Bound":
        return f"bound {row.bound or 'unknown'}" if row.outcome == Outcome.OK else "bound none"
    return "number" if column.numeric else None


def _sort_value(column: Column, row: ResultRow) -> str:
    value = column.sort(row)
    return "" if value is None else str(value)


def system_table(groups: Iterable[Group], caption: str) -> Html:
    """Each field with its value and how it is known; what is unavailable says why."""
    titles = ("Field", "Value", "Known by", "Remark")
    head = tag("tr", *(tag("th", title, scope="col") for title in titles))
    bodies = (tag("tbody", _group_heading(group), *_fields(group)) for group in groups if group.fields)
    table = tag("table", tag("caption", caption), tag("thead", head), *bodies, class_="system")
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=caption)


def _group_heading(group: Group) -> Html:
    return tag("tr", tag("th", group.title, colspan=4, scope="rowgroup"), class_="group")


def _fields(group: Group) -> Iterable[Html]:
    for field in group.fields:
        cells = (field.value, field.status, field.reason)
        yield tag("tr", tag("th", field.name, scope="row"), *(tag("td", cell) for cell in cells), class_=field.status)
