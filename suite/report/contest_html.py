"""Implementations side by side in an HTML report: a table for each case, its verdict in sight while it is closed."""

from collections.abc import Iterator, Sequence

from suite.report.contest import ABOUT, TITLE, Contest, Way
from suite.report.contest_columns import COLUMNS
from suite.report.tables import scrolled
from suite.report.tags import Html, tag

OPEN = 2  # of the largest cases: the others are a click away


def contest_section(found: Sequence[Contest], several_devices: bool) -> Iterator[Html]:
    """Nothing where no case was computed in two ways."""
    if not found:
        return
    yield tag(
        "section",
        tag("h2", TITLE),
        tag("p", ABOUT, class_="small"),
        *(_contest(contest, number < OPEN, several_devices) for number, contest in enumerate(found)),
    )


def _contest(contest: Contest, is_open: bool, several_devices: bool) -> Html:
    title = contest.titled(several_devices)
    untimed = [tag("p", f"Not timed: {'; '.join(contest.untimed)}.", class_="small")] if contest.untimed else []
    summary = tag("summary", tag("span", f"{title}: "), tag("span", contest.verdict, class_="small"))
    return tag("details", summary, _table(contest, title), *untimed, class_="rungs", open=is_open)


def _table(contest: Contest, title: str) -> Html:
    head = tag("thead", tag("tr", *(tag("th", column.title, scope="col", title=column.meaning) for column in COLUMNS)))
    caption = f"Ways to compute {title}"
    body = tag("tbody", *(_row(way) for way in contest.ways))
    return scrolled(tag("table", tag("caption", caption), head, body, class_="results"), caption)


def _row(way: Way) -> Html:
    first, *rest = COLUMNS
    cells = (tag("td", column.text(way), **({"class_": "number"} if column.numeric else {})) for column in rest)
    return tag("tr", tag("th", first.text(way), scope="row"), *cells)
