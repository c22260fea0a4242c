"""How long a run stood still between its cases: while it was stopped, before somebody resumed it."""

from collections.abc import Iterable
from datetime import datetime

from suite.rows import Pause


def pause_between(spans: Iterable[tuple[datetime, datetime]]) -> Pause | None:
    """Of cases in the order in which they began, each with when it began and ended; ``None`` where one was always under way.

    A pause begins when the last case under way has ended, and lasts until another starts.
    """
    gaps_s: list[float] = []
    last: datetime | None = None
    for began, ended in spans:
        if last is not None and began > last:
            gaps_s.append((began - last).total_seconds())
        last = ended if last is None else max(last, ended)
    return Pause(sum(gaps_s), max(gaps_s)) if gaps_s else None
