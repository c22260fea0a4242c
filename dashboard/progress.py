"""How far a run is, kept up to date while it runs."""

from collections.abc import Mapping
from datetime import UTC, datetime

import streamlit as st

from dashboard.shelf import Shelf
from dashboard.text import plain
from suite.outcome import Outcome
from suite.report.progress import Progress, progress_of
from suite.report.words import moment
from suite.store.scopes import Entry

EVERY_S = 2.0


def progress(shelf: Shelf, entry: Entry) -> None:
    """State, counts by ending, and of a run that goes on how long the rest may take."""
    if entry.status != "running":
        _draw(entry, shelf.counts(entry.run))
        return
    st.fragment(_running, run_every=EVERY_S)(shelf, entry.run)


def _running(shelf: Shelf, run: str) -> None:
    entry = next((each for each in shelf.look() if each.run == run), None)
    if entry is not None:
        _draw(entry, shelf.counts(run))


def _draw(entry: Entry, counts: Mapping[str, int]) -> None:
    found = progress_of(entry.planned, counts, entry.started_at, _now() if entry.status == "running" else entry.finished_at)
    ended = f", ended {moment(entry.finished_at)}" if entry.finished_at else ""
    st.caption(plain(f"{entry.experiment or 'no experiment'}, {entry.status}, started {moment(entry.started_at)}{ended}"))
    if entry.planned:
        st.progress(found.share, text=_words(found, entry.status))
    with st.container(horizontal=True):
        for outcome, count in sorted(counts.items(), key=lambda each: (each[0] != Outcome.OK, -each[1])):
            st.metric(plain(outcome.replace("_", " "), 40), f"{count:,}")


def _words(found: Progress, status: str) -> str:
    done = f"{found.finished:,} of {found.planned:,} cases"
    return f"{done}, about {found.left} left" if status == "running" and found.left else done


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
