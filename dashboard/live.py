"""Fresh data while a sweep runs: a part of the page asks the stores again and again, and has it drawn anew when they grew."""

from collections.abc import Sequence

import streamlit as st

from dashboard.stores import Stores, open_stores
from suite.store.scopes import Entry

RUNNING_S, IDLE_S, READING_S = 3.0, 15.0, 1.0  # between two looks


def watch(urls: Sequence[str], stores: Stores, missing: int) -> None:
    """Look again: soon while runs are being read, often while one is running, seldom otherwise."""
    running = any(run.entry.status == "running" for run in stores.runs)
    every_s = READING_S if missing else RUNNING_S if running else IDLE_S
    st.session_state["just_drawn"] = True
    st.fragment(_look, run_every=every_s)(tuple(urls), _state(stores), missing)


def _look(urls: Sequence[str], before: tuple[Entry, ...], missing: int) -> None:
    if st.session_state.pop("just_drawn", False):  # the page itself has just looked
        return
    stores = open_stores(urls)
    if _state(stores) != before or (missing and _missing(stores) != missing):
        st.rerun()


def _missing(stores: Stores) -> int:
    return sum(shelf.held(wait_s=0).missing for shelf in stores.shelves)


def _state(stores: Stores) -> tuple[Entry, ...]:
    return tuple(run.entry for run in stores.runs)
