"""The tables of the HTML report."""

from collections.abc import Collection, Iterable, Sequence

from suite.outcome import Outcome
from suite.report import ladder_columns
from suite.report.columns import Column, named, outcome, told
from suite.report.ladder import Ladder, Rung
from suite.report.system import Group
from suite.report.tags import Html, tag
from suite.report.words import doubtful, remarks, variation, workload_title
from suite.rows import ResultRow

# What a reader looks for first stands where a narrow screen still shows it.
FIRST = named("Time", "Of spec", "Bound")
REST = named(
    "Format",
    "Regime",
    "Throughput",
    "Bandwidth",
    "Tokens",
    "At clock",
    "Empirical",
    "Of boost",
    "Clock",
    "Power",
    "Per joule",
    "Error",
    "Quantisation",
    "Implementation",
    "Outcome",
)
LEADING = (*named("Case"), *FIRST)
HINT = "This table is wider than its place: scroll it sideways for more columns."


def results_table(rows: Sequence[ResultRow], caption: str, identity: str, opened: Collection[int] = ()) -> Html:
    """Every case, sortable by any column; a case without a time has its outcome and reason where time and bound would be.

    What puts a figure in doubt stands under the case's name, where it is seen whatever is scrolled away; on a narrow screen
    format and regime do too, which tell cases of one name apart.  The names of the results in ``opened`` are buttons that
    show the case over time.
    """
    rest = told(REST, [row for row in rows if row.p50_s is not None])  # the others say in words how they ended
    head = tag("tr", *(_heading(column) for column in (*LEADING, *rest)))
    table = tag(
        "table",
        tag("caption", caption),
        tag("thead", head),
        tag("tbody", *(_row(row, rest, row.result_id in opened) for row in rows)),
        class_="results sortable",
        style=f"--columns: {len(LEADING) + len(rest) - 1}; --after-reason: {len(FIRST) + 1}",
        id=identity,
    )
    return scrolled(table, caption)


def ladder_table(ladder: Ladder) -> Html:
    """One row a rung, sortable, each with the number that its point has in the figure."""
    shown = ladder_columns.columns(ladder)
    head = tag("tr", *(_heading(column) for column in shown))
    rows = (_rung(rung, shown) for rung in ladder.rungs)
    table = tag(
        "table",
        tag("caption", f"Formats of {ladder.shape}, {ladder.regime}"),
        tag("thead", head),
        tag("tbody", *rows),
        class_="results ladder sortable",
    )
    return scrolled(table, ladder.title)


def _rung(rung: Rung, shown: Sequence[ladder_columns.Column]) -> Html:
    first, *rest = shown
    number = tag("span", str(rung.number), class_="rung")
    name = tag("th", number, " ", first.text(rung), scope="row", data_sort=rung.number)
    cells = (_rung_cell(column, rung) for column in rest)
    return tag("tr", name, *cells, class_="doubtful" if doubtful(rung.row) else None)


def _rung_cell(column: ladder_columns.Column, rung: Rung) -> Html:
    kind = f"bound {rung.row.bound or 'unknown'}" if column.title == "Bound" else "number" if column.numeric else None
    value = column.sort(rung)
    return tag("td", column.text(rung), class_=kind, data_sort="" if value is None else str(value))


def scrolled(table: Html, caption: str) -> Html:
    """A table that scrolls sideways where the screen is narrower, and says so then."""
    scroll = tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=caption)
    return tag("div", tag("p", HINT, class_="hint"), scroll, class_="frame")


def _heading(column: Column | ladder_columns.Column) -> Html:
    button = tag("button", column.title, type="button", title=column.meaning)
    return tag("th", button, scope="col", class_="number" if column.numeric else None)


def _row(row: ResultRow, rest: Sequence[Column], opens: bool) -> Html:
    remark = remarks(row) if row.p50_s is not None else ""
    title = workload_title(row)
    shown = tag("button", title, type="button", class_="case", data_case=row.result_id, aria_expanded="false")
    below = (*_below("variation", variation(row)), *_below("remark", remark))
    name = tag("th", shown if opens else title, *below, scope="row", data_which=f"{row.format_label}, {row.regime}")
    first = [_cell(column, row) for column in FIRST] if row.p50_s is not None else [_ending(row)]
    return tag("tr", name, *first, *(_cell(column, row) for column in rest), class_=_row_class(row))


def _ending(row: ResultRow) -> Html:
    ended, said = outcome(row) or "not timed", remarks(row)
    how = tag("strong", ended, class_="bound none")
    return tag("td", how, f": {said}" if said else "", colspan=len(FIRST), class_="reason", data_sort=ended)


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
        return f"bound {row.bound or 'unknown'}"
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
    return scrolled(table, caption)


def _group_heading(group: Group) -> Html:
    return tag("tr", tag("th", group.title, colspan=4, scope="rowgroup"), class_="group")


def _fields(group: Group) -> Iterable[Html]:
    for field in group.fields:
        cells = (field.value, field.status, field.reason)
        yield tag("tr", tag("th", field.name, scope="row"), *(tag("td", cell) for cell in cells), class_=field.status)
