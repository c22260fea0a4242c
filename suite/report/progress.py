"""How far a run is, from what it planned and what has ended."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple


class Progress(NamedTuple):
    """``left`` says in words how long the rest may take at the pace so far; empty where that cannot be said."""

    finished: int
    planned: int
    left: str

    @property
    def share(self) -> float:
        """0 to 1."""
        return min(1.0, self.finished / self.planned) if self.planned else 0.0


def progress_of(planned: int, counts: Mapping[str, int], started_at: str, now: str | None) -> Progress:
    """From the number of planned cases, how many ended how, and two UTC times in ISO 8601."""
    finished = sum(counts.values())
    spent_s = _seconds(started_at, now)
    left_s = spent_s / finished * (planned - finished) if finished and spent_s and planned > finished else None
    return Progress(finished, planned, "" if left_s is None else _words(left_s))


def _seconds(began: str, now: str | None) -> float | None:
    try:
        spent_s = (datetime.fromisoformat(now or "") - datetime.fromisoformat(began)).total_seconds()
    except (ValueError, TypeError):
        return None
    return spent_s if spent_s > 0 else None


def _words(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
