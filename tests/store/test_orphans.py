"""A log whose store is gone: a new store of that name takes nothing of it, and nothing of it is lost."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from suite.errors import StoreUnusable
from suite.store import maintain, orphans
from suite.store.queries import Reader
from suite.store.writer import Store
from tests.store.lost import are_aside, beside, fill, killed, runs
from tests.store.places import unwritable


def gone(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.mark.parametrize("lose", [gone, emptied])
def test_the_log_of_a_deleted_store_is_moved_aside_and_not_replayed(path: Path, lose: Callable[[Path], None]) -> None:
    killed(path)
    left = beside(path)
    assert set(left) == {"s.db-wal", "s.db-shm"}
    lose(path)
    with Store.open(str(path)) as store:
        assert set(store.migrated.orphans) == {path.with_name("s.db-wal.orphan-1"), path.with_name("s.db-shm.orphan-1")}
    assert beside(path) == {f"{name}.orphan-1": content for name, content in left.items()}
    new = fill(path, 2)
    assert runs(path) == [new]
    assert maintain.check(str(path)) == []


@contextmanager
def held(path: Path) -> Iterator[None]:
    """While another process has a run in the store under way."""
    command = [sys.executable, "-m", "tests.store.child", str(path), "hold"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as live:
        assert live.stdout is not None
        assert live.stdout.readline().strip()
        yield
        live.communicate()


def test_a_store_deleted_during_its_run_does_not_come_back(path: Path) -> None:
    with held(path):
        gone(path)
        new = fill(path, 2)
    assert runs(path) == [new]
    assert maintain.check(str(path)) == []


def test_a_store_emptied_during_its_run_is_locked_and_its_log_is_named(path: Path) -> None:
    with held(path):
        emptied(path)
        log = beside(path)["s.db-wal"]
        with pytest.raises(StoreUnusable, match=r"locked by another process.*; what lay beside it is kept as .*wal.orphan-1"):
            Store.open(str(path), busy_timeout_s=0.3)
    assert beside(path)["s.db-wal.orphan-1"] == log


def test_a_second_orphan_does_not_take_the_place_of_the_first(path: Path) -> None:
    for number in (1, 2):
        killed(path, number)
        path.unlink()
        Store.open(str(path)).close()
        assert are_aside(path, number)
        path.unlink()
    assert beside(path)["s.db-wal.orphan-1"] != beside(path)["s.db-wal.orphan-2"]


def test_a_journal_is_an_orphan_too(path: Path) -> None:
    path.with_name("s.db-journal").write_bytes(b"journal" * 1000)
    Store.open(str(path)).close()
    assert beside(path) == {"s.db-journal.orphan-1": b"journal" * 1000}


def test_a_merge_into_a_deleted_store_says_what_it_moved(path: Path) -> None:
    killed(path)
    path.unlink()
    source = path.with_name("source.db")
    run = fill(source, 1)
    assert path.with_name("s.db-wal.orphan-1") in maintain.merge(str(source), str(path)).orphans
    assert runs(path) == [run]


def test_reading_and_checking_leave_the_log_of_an_empty_file_alone(path: Path) -> None:
    killed(path)
    emptied(path)
    left = beside(path)
    for look in (runs, lambda path: maintain.check(str(path)), lambda path: maintain.vacuum(str(path))):
        with pytest.raises(StoreUnusable, match=r"no store at|was emptied, and its log lies beside it"):
            look(path)
    assert beside(path) == left


def test_a_reader_that_was_open_when_its_store_was_emptied_leaves_the_log_alone(path: Path) -> None:
    killed(path)
    with Reader.open(str(path)) as reader:
        left = beside(path)
        emptied(path)
        with pytest.raises(StoreUnusable, match="was emptied, and its log lies beside it"):
            reader.runs()
    assert beside(path) == left


def test_the_log_of_a_store_that_is_there_is_its_own(path: Path) -> None:
    run = killed(path)
    left = beside(path)
    with orphans.alone(path):
        assert orphans.set_orphans_aside(path) == ()
    assert beside(path) == left
    with Store.open(str(path)) as store:
        assert store.migrated.orphans == ()
    assert runs(path) == [run]
    assert beside(path) == {}


def test_an_orphan_that_cannot_be_moved_keeps_the_store_from_being_created(path: Path) -> None:
    killed(path)
    path.unlink()
    left = beside(path)
    with unwritable(path.with_name("s.db-wal")), pytest.raises(StoreUnusable, match=r"s\.db-wal, of a store that was there"):
        Store.open(str(path))
    assert not path.exists()
    assert beside(path)["s.db-wal"] == left["s.db-wal"]


def test_of_several_that_create_a_deleted_store_at_once_all_write_into_the_same(path: Path) -> None:
    killed(path)
    path.unlink()
    commands = [[sys.executable, "-m", "tests.store.child", str(path), "new", "3"] for _ in range(4)]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE) for command in commands]
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0] * 4
    assert len(runs(path)) == 4
    assert maintain.check(str(path)) == []
    assert are_aside(path, 1)
    assert "s.db-wal.orphan-2" not in beside(path)
