"""The stores that the dashboard was started with: each opened once and read-only, with a message where one cannot be."""

import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import streamlit as st

from dashboard.shelf import Shelf
from suite.errors import StoreUnusable
from suite.store.browsing import Browser
from suite.store.scopes import Entry

DEFAULT_STORE = "roofbench.db"


class Run(NamedTuple):
    """A run and the number of the store that it is in."""

    store: int
    entry: Entry


class Stores(NamedTuple):
    """The stores that are open, all their runs, the latest first, and a message for each store that is not open."""

    shelves: tuple[Shelf, ...]
    runs: tuple[Run, ...]
    failures: Mapping[str, str]


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
            runs += [Run(len(shelves), entry) for entry in shelf.look()]
            shelves.append(shelf)
        except StoreUnusable as error:
            failures[url] = str(error)
    runs.sort(key=lambda run: run.entry.started_at, reverse=True)
    return Stores(tuple(shelves), tuple(runs), failures)


@st.cache_resource(show_spinner=False)
def _shelf(url: str, number: int) -> Shelf:
    return Shelf(url, Browser.open(url), number)
