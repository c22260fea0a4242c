"""Rows that a table calls right while the rest of the text says that nobody looked, or that something was wrong."""

from collections.abc import Sequence
from dataclasses import replace

from suite.importers.rows import Checked, CollectiveRow


def contradiction(rows: Sequence[CollectiveRow], validation: int | None, out_of_bounds: int | None) -> str:
    """Why no row is taken for right; empty where nothing speaks against it.

    ``validation`` is the tool's option, ``out_of_bounds`` what its footer counts; ``None`` where they are not there.
    """
    if not any(row.checked is Checked.GOOD for row in rows):
        return ""
    if validation == 0:
        return "checking was off by the options, and rows say that nothing was wrong: none is taken for right"
    if out_of_bounds and all(row.checked is not Checked.BAD for row in rows):
        return f"the footer counts {out_of_bounds} values out of bounds, and no row says where: none is taken for right"
    return ""


def as_unchecked(rows: Sequence[CollectiveRow]) -> tuple[CollectiveRow, ...]:
    """The rows with no word of being right."""
    return tuple(
        replace(row, checked=Checked.UNCHECKED, wrong=None, error_delta=None) if row.checked is Checked.GOOD else row
        for row in rows
    )
