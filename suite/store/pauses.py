"""How long a run stood still between its cases: while it was stopped, before somebody resumed it."""

from typing import Any

from sqlalchemy import ColumnElement, Select, func, select

from suite.store.tables import Result, Run

DAY_S = 86400.0


def pauses_statement(*conditions: ColumnElement[bool]) -> Select[Any]:
    """Select (name, total_s, longest_s) of the runs with a pause, every attempt and slot counted.

    A pause begins when the last case under way has ended, and lasts until another starts.
    """
    before = func.max(func.julianday(Result.finished_at)).over(
        partition_by=Result.run_id, order_by=(Result.started_at, Result.id), rows=(None, -1)
    )
    gap = ((func.julianday(Result.started_at) - before) * DAY_S).label("gap_s")
    each = select(Run.name, gap).join(Run, Run.id == Result.run_id).where(*conditions).subquery()
    return (
        select(each.c.name, func.sum(each.c.gap_s).label("total_s"), func.max(each.c.gap_s).label("longest_s"))
        .where(each.c.gap_s > 0)
        .group_by(each.c.name)
    )
