"""Cached queries of the dashboard: stores are opened once, and read again only when something was added to them."""

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from threading import RLock
from typing import Any, TypeVar

import streamlit as st

from suite.backend import Fact
from suite.errors import StoreUnusable
from suite.outcome import Evidence
from suite.report.panels import Source
from suite.rows import CalibrationHistory, DeviceRow, ResultRow, RunInfo
from suite.store.queries import Reader
from suite.store.roofs import RoofKey

Answer = TypeVar("Answer")

DEFAULT_STORE = "roofbench.db"


class CachedSource:
    """A store's answers, kept until a result, a run or a status in it changes; rows are frozen, so sessions share them."""

    def __init__(self, reader: Source) -> None:
        self._reader = reader
        self._lock = RLock()
        self._runs: tuple[RunInfo, ...] = ()
        self._answers: dict[Hashable, Any] = {}

    def runs(self) -> tuple[RunInfo, ...]:
        """Ask the store itself, and forget everything else if it has changed."""
        found = tuple(self._reader.runs())
        with self._lock:
            if found != self._runs:
                self._runs, self._answers = found, {}
        return found

    def resolve(self, run: str) -> RunInfo:
        return self._reader.resolve(run)

    def results(self, run: str) -> Sequence[ResultRow]:
        return self._kept(("results", run), lambda: tuple(self._reader.results(run)))

    def devices(self, run: str) -> Sequence[DeviceRow]:
        return self._kept(("devices", run), lambda: tuple(self._reader.devices(run)))

    def environment(self, run: str) -> Mapping[str, Mapping[str, Fact]]:
        return self._kept(("environment", run), lambda: self._reader.environment(run))

    def calibrations(self, device_uid: str, backend: str, evidence: Evidence) -> CalibrationHistory:
        question = ("calibrations", device_uid, backend, evidence)
        return self._kept(question, lambda: self._reader.calibrations(device_uid, backend, evidence))

    def empirical_roofs(self, evidence: Evidence) -> Mapping[RoofKey, float]:
        return self._kept(("roofs", evidence), lambda: self._reader.empirical_roofs(evidence))

    def empirical_bandwidth(self, device_uid: str, evidence: Evidence) -> float | None:
        question = ("bandwidth", device_uid, evidence)
        return self._kept(question, lambda: self._reader.empirical_bandwidth(device_uid, evidence))

    def _kept(self, question: Hashable, ask: Callable[[], Answer]) -> Answer:
        with self._lock:
            if question not in self._answers:
                self._answers[question] = ask()
            answer: Answer = self._answers[question]
            return answer


@dataclass(frozen=True)
class Run:
    """A run and where it is stored; ``store`` is the path as given on the command line."""

    store: str
    source: Source
    info: RunInfo

    @property
    def key(self) -> str:
        """What names the run in the page's address."""
        return self.info.run


@dataclass(frozen=True)
class Stores:
    """The runs of every store that could be opened, the latest first, and a message for each that could not."""

    runs: tuple[Run, ...]
    failures: Mapping[str, str]


def store_arguments() -> list[str]:
    """The stores named on the command line after ``--``, or the default one."""
    return sys.argv[1:] or [DEFAULT_STORE]


def open_reader(url: str) -> Source:
    """Open a store for reading; ``StoreUnusable`` says in one line why it cannot be."""
    return Reader.open(url)


def load_stores(urls: Sequence[str]) -> Stores:
    """Open what can be opened and list all runs; asked on every rerun, so that a growing store is seen to grow."""
    runs: list[Run] = []
    failures: dict[str, str] = {}
    for url in dict.fromkeys(urls):
        try:
            source = _cached_source(url)
            runs += [Run(url, source, info) for info in source.runs()]
        except StoreUnusable as error:
            failures[url] = str(error)
    runs.sort(key=lambda run: run.info.started_at, reverse=True)
    return Stores(tuple(runs), failures)


def store_name(url: str) -> str:
    """The file's name, without the folders above it."""
    return PurePath(url).name


@st.cache_resource(show_spinner=False)
def _cached_source(url: str) -> CachedSource:
    return CachedSource(open_reader(url))
