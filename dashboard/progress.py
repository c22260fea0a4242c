"""How far a run is, kept up to date while it runs."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import streamlit as st

from dashboard.shelf import Shelf
from dashboard.text import plain
from suite.outcome import Outcome
from suite.report.progress import Progress, progress_of
from suite.report.words import moment
from suite.show.results import span
from suite.store.scopes import Entry, Scope

EVERY_S = 2.0
MOST_TIMED = 32  # of the last cases, by whose pace the time left is told


def progress(shelf: Shelf, entry: Entry) -> None:
    """State, counts by ending, and of a run that goes on how long the rest may take."""
    if entry.status != "running":
        _draw(entry, shelf.counts(entry.run))
        return
    st.fragment(_running, run_every=EVERY_S)(shelf, entry.run)


def _running(shelf: Shelf, run: str) -> None:
    entry = next((each for each in shelf.look() if each.run == run), None)
    if entry is not None:
        rows = shelf.page(Scope(runs=(run,)), MOST_TIMED, 0, "")
        _draw(entry, shelf.counts(run), [row.finished_at for row in rows])


def _draw(entry: Entry, counts: Mapping[str, int], ended: Sequence[str] = ()) -> None:
    found = progress_of(entry.planned, counts, entry.started_at, _now() if entry.status == "running" else entry.finished_at)
    until = f", ended {moment(entry.finished_at)}" if entry.finished_at else ""
    st.caption(plain(f"{entry.experiment or 'no experiment'}, {entry.status}, started {moment(entry.started_at)}{until}"))
    if entry.planned:
        st.progress(found.share, text=_words(found, left_s(found, ended, _now()) if entry.status == "running" else None))
    with st.container(horizontal=True):
        for outcome, count in sorted(counts.items(), key=lambda each: (each[0] != Outcome.OK, -each[1])):
            st.metric(plain(outcome.replace("_", " "), 40), f"{count:,}")


def left_s(found: Progress, ended: Sequence[str], now: str) -> float | None:
    """Seconds that the rest may take, by when the last cases ``ended``, the newest first; ``None`` where two are not known.

    The time before the first of them is none of a case's: workers start in it.  What the plan predicts of cases that have not
    run yet is not in the store.
    """
    try:
        times = [datetime.fromisoformat(each) for each in ended]
        since_s = (datetime.fromisoformat(now) - times[0]).total_seconds() if times else 0.0
        pace_s = (times[0] - times[-1]).total_seconds() / (len(times) - 1) if len(times) > 1 else 0.0
    except (ValueError, TypeError):  # a file may hold anything where a time should be
        return None
    if pace_s <= 0:
        return None
    return max(0.0, pace_s * (found.planned - found.finished) - min(max(0.0, since_s), pace_s))


def _words(found: Progress, left: float | None) -> str:
    done = f"{found.finished:,} of {found.planned:,} cases"
    return f"{done}, about {span(left)} left at the pace of the last cases" if left is not None and left > 0 else done


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
