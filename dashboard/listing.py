"""All results that pass, page by page: never more of them are read than a page shows, or one run holds."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import streamlit as st

from dashboard.address import choose_number, choose_one, is_turned, put
from dashboard.downloads import as_csv, as_parquet
from dashboard.frames import download_buttons
from dashboard.results import results_table
from dashboard.selection import Selection
from suite.report.words import counted, resolved
from suite.rows import ResultRow
from suite.store.scopes import ORDERS

PAGE_ROWS = 200
MOST_ORDERED = 20_000  # results that are put in order by a value: all of them are looked at
MOST_DOWNLOADED = 100_000
NEWEST = "newest first"
VALUES: dict[str, Callable[[ResultRow], float | None]] = {
    "best share of spec": lambda row: row.fractions.spec,
    "highest rate": lambda row: row.flop_s,
    "highest bandwidth": lambda row: row.bytes_s,
    "longest": lambda row: row.p50_s,
    "shortest": lambda row: None if row.p50_s is None else -row.p50_s,
}
assert list(VALUES) == list(ORDERS)


class Piece(NamedTuple):
    """Consecutive results of one run of one store."""

    store: int
    run: str
    offset: int
    limit: int


def results_section(selection: Selection, key: str) -> ResultRow | None:
    """A heading, a page of results and their downloads; the row that a person chose."""
    st.subheader("Results")
    total = selection.results
    with st.container(horizontal=True):
        order = _order(total)
        number = _page_number(total)
    rows = page_of(selection, number * PAGE_ROWS, PAGE_ROWS, order)
    if not rows:
        return None
    first = number * PAGE_ROWS + 1
    place = f"{first:,} to {first + len(rows) - 1:,} of " if total > len(rows) else ""
    st.caption(
        f"{place}{counted(total, 'result')}. A heading sorts these, the glass in the corner of the table searches them; "
        "choose a line to see its case."
    )
    chosen = results_table(rows, f"{key}-{number}-{order}", f"Results: {place}{total}", selection.whose)
    _downloads(selection, total, key)
    return chosen


def page_of(selection: Selection, offset: int, limit: int, order: str = NEWEST) -> list[ResultRow]:
    """Results ``offset`` to ``offset + limit`` of those that pass."""
    if order != NEWEST:
        return _ordered(selection, offset, limit, order)
    rows: list[ResultRow] = []
    for piece in pieces(selection, offset, limit):
        scope = selection.scope(store=piece.store)._replace(runs=(piece.run,))
        rows += selection.stores.shelves[piece.store].page(scope, piece.limit, piece.offset, "")
    return rows


def pieces(selection: Selection, offset: int, limit: int) -> Iterator[Piece]:
    """Which runs a page lies in, by how many results of each pass: the newest run first."""
    counts: dict[tuple[int, str], int] = {}
    for device, group in selection.groups:
        counts[device.store, group.run] = counts.get((device.store, group.run), 0) + group.results
    for run in selection.stores.runs:
        count = counts.get((run.store, run.entry.run), 0)
        if count > offset and limit > 0:
            taken = min(limit, count - offset)
            yield Piece(run.store, run.entry.run, offset, taken)
            limit -= taken
        offset = max(0, offset - count)


def all_rows(selection: Selection, most: int = MOST_DOWNLOADED) -> Iterator[ResultRow]:
    """Everything that passes, read a page at a time, at most ``most``."""
    for offset in range(0, min(selection.results, most), PAGE_ROWS):
        yield from page_of(selection, offset, min(PAGE_ROWS, most - offset))


def _ordered(selection: Selection, offset: int, limit: int, order: str) -> list[ResultRow]:
    """Of several stores each gives its first, which are put in order again."""
    stores = sorted({device.store for device in selection.devices})
    found: list[ResultRow] = []
    for store in stores:
        found += selection.stores.shelves[store].page(selection.scope(store=store), offset + limit, 0, order)
    if len(stores) > 1:
        value = VALUES[order]
        found.sort(key=lambda row: (value(row) is None, not resolved(row), -(value(row) or 0.0)))
    return found[offset : offset + limit]


def _order(total: int) -> str:
    if total <= PAGE_ROWS:
        return NEWEST
    options: Sequence[str] = [NEWEST, *(ORDERS if total <= MOST_ORDERED else ())]
    said = "" if total <= MOST_ORDERED else f"Narrow the choice to {MOST_ORDERED:,} results to order them by a value"
    return choose_one("Order", "order", options, help=said or None)


def _page_number(total: int) -> int:
    last = (total - 1) // PAGE_ROWS if total else 0
    if last == 0:
        return 0
    if is_turned() and not st.query_params.get("page"):
        put("page", ["1"], ["1"])  # another table begins at its beginning
        st.session_state.pop("page-number", None)
    return choose_number("Page", "page", "page-number", 1, 1, last + 1, 1, f"Of {last + 1:,}") - 1


def _downloads(selection: Selection, total: int, key: str) -> None:
    said = f"The first {MOST_DOWNLOADED:,} of them" if total > MOST_DOWNLOADED else "All of them"
    download_buttons(lambda: as_csv(all_rows(selection)), lambda: as_parquet(all_rows(selection)), "roofbench", key, said)
