"""A store that another process locks in mid-run: the run waits for it, and gives up without losing what was measured."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from suite.errors import StoreWriteFailed
from suite.store import maintain
from suite.store.queries import Reader
from suite.store.session import LOCKED_AT_MOST_S, Patience
from suite.store.writer import RunWriter, Store
from suite.sweep import _keeping_what_ended
from tests.store import material

TRY_S = 0.02


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@contextmanager
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield holder


def attempts(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        return [number for (number,) in connection.execute("SELECT attempt FROM result ORDER BY id")]


def test_a_run_outlasts_a_lock_and_says_once_that_it_waits(path: Path) -> None:
    told: list[str] = []
    waits = threading.Event()

    def tell(line: str) -> None:
        told.append(line)
        waits.set()

    def release(holder: sqlite3.Connection) -> None:
        waits.wait()
        time.sleep(10 * TRY_S)
        holder.execute("ROLLBACK")

    patience = Patience(LOCKED_AT_MOST_S, tell)
    with Store.open(str(path), busy_timeout_s=TRY_S, patience=patience) as store, store.start_run(material.run_start()) as run:
        with locked(path) as holder:
            releasing = threading.Thread(target=release, args=(holder,))
            releasing.start()
            run.record(material.record())
            releasing.join()
        run.record(material.record(attempt=2))
        run.finish("complete")
    assert attempts(path) == [1, 2]
    assert told == [
        f"store {path} is locked by another process: waiting for it, at most 600 s; what is measured meanwhile is kept"
    ]


def _record_two_and_end(run: RunWriter) -> None:
    with run:
        try:
            run.record(material.record(attempt=2))
        except StoreWriteFailed:
            assert run.is_locked_out
            run.record(material.record(attempt=3))  # what ended meanwhile on another device
            raise


@pytest.mark.parametrize("resumed", [False, True])
def test_when_patience_ends_what_was_measured_lies_beside_the_store_and_is_merged(path: Path, resumed: bool) -> None:
    with Store.open(str(path), busy_timeout_s=TRY_S, patience=Patience(0.1)) as store:
        run = store.start_run(material.run_start())
        run.record(material.record())
        if resumed:
            run.finish("interrupted")
            run = store.resume_run("latest")
        with locked(path), pytest.raises(StoreWriteFailed) as told:
            _record_two_and_end(run)
    beside = Path(f"{path}.kept-1")
    assert f"is kept in {beside}: when the store is free, `roofbench store merge {beside} --store {path}`" in str(told.value)
    assert told.value.run == run.run
    assert (attempts(path), attempts(beside)) == ([1], [2, 3])
    merged = maintain.merge(str(beside), str(path))
    assert (merged.runs_added, merged.results_added, dict(merged.renamed)) == (0, 2, {})
    assert attempts(path) == [1, 2, 3]
    with Reader.open(str(path)) as reader:
        assert [info.status for info in reader.runs()] == ["interrupted"]
    assert maintain.check(str(path)) == []


def test_an_interrupt_ends_the_waiting(path: Path) -> None:
    patience = Patience(LOCKED_AT_MOST_S, lambda line: run.stop_waiting())
    with Store.open(str(path), busy_timeout_s=TRY_S, patience=patience) as store:
        run = store.start_run(material.run_start())
        with locked(path), pytest.raises(StoreWriteFailed, match="is kept in"), run:
            run.record(material.record())
    assert attempts(Path(f"{path}.kept-1")) == [1]


@pytest.mark.parametrize("aside", [True, False])
def test_a_sweep_that_gives_up_enters_what_had_ended_meanwhile_where_it_can_be_kept(aside: bool) -> None:
    class Fake:
        is_locked_out = aside

        def __init__(self) -> None:
            self.writer, self.entered = self, list[str]()

        def untold(self) -> Iterator[str]:
            yield from ("one", "two")

        def enter(self, ended: str) -> None:
            self.entered.append(ended)

    fake = cast(Any, Fake())
    with pytest.raises(StoreWriteFailed, match="locked"), _keeping_what_ended(fake, fake):
        raise StoreWriteFailed("locked")
    assert fake.entered == ["one", "two"] * aside
