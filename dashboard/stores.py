"""The stores that the dashboard was started with: each opened once and read-only, with a message where one cannot be."""

import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import streamlit as st

from dashboard.shelf import Shelf
from dashboard.store_names import store_names
from suite.errors import StoreUnusable
from suite.store.browsing import Browser
from suite.store.runs import SELFTEST
from suite.store.scopes import Entry

DEFAULT_STORE = "roofbench.db"
_AS_SETTING, _AS_ARGUMENT = "with store.url=PATH", "with roofbench dashboard PATH"  # how a run and this command name a store


class Run(NamedTuple):
    """A run and the number of the store that it is in."""

    store: int
    entry: Entry


class Stores(NamedTuple):
    """The stores that are open, all their runs, the latest first, and a message for each store that is not open."""

    shelves: tuple[Shelf, ...]
    runs: tuple[Run, ...]
    failures: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """What each store is called, all of them different."""
        return store_names(tuple(shelf.path for shelf in self.shelves))


def newest_of(stores: Stores) -> Run:
    """The newest of at least one run, as ``latest`` is on the command line: one of a selftest only where there is no other."""
    return next((run for run in stores.runs if run.entry.experiment != SELFTEST), stores.runs[0])


def store_arguments() -> list[str]:
    """The stores named on the command line after ``--``, or the default one."""
    return sys.argv[1:] or [DEFAULT_STORE]


def open_stores(urls: Sequence[str]) -> Stores:
    """Open what can be opened and list the runs; asked on every rerun, so that a growing store is seen to grow."""
    shelves: list[Shelf] = []
    runs: list[Run] = []
    failures: dict[str, str] = {}
    for url in dict.fromkeys(urls):
        try:
            shelf = _shelf(url, len(shelves))
            if any(shelf.path == other.path for other in shelves):
                continue  # one file under two names
            runs += [Run(len(shelves), entry) for entry in shelf.look()]
            shelves.append(shelf)
        except StoreUnusable as error:
            failures[url] = str(error).replace(_AS_SETTING, _AS_ARGUMENT)
    runs.sort(key=lambda run: run.entry.started_at, reverse=True)
    return Stores(tuple(shelves), tuple(runs), failures)


@st.cache_resource(show_spinner=False)
def _shelf(url: str, number: int) -> Shelf:
    return Shelf(url, Browser.open(url), number)
