"""A good store that was put in the place of an open one: the log of the old is never folded into it."""

import errno
import sqlite3
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile

import pytest

from suite.errors import StoreUnusable, StoreWriteFailed
from suite.store import maintain
from suite.store.writer import Store
from tests.store import material
from tests.store.lost import are_aside, beside, exchange, fill, killed, runs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("good") / "good.db"
    fill(path, 60)
    return path.read_bytes()


@pytest.fixture
def good(tmp_path: Path, filled: bytes) -> Path:
    path = tmp_path / "good.db"
    path.write_bytes(filled)
    return path


def test_a_run_whose_file_was_exchanged_takes_its_log_along(path: Path, good: Path) -> None:
    with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
        run.record(material.record())
        exchange(path, good)
        with pytest.raises(StoreWriteFailed, match=r"put it back with its log, which is kept as .*s.db-wal.orphan-1") as told:
            run.record(material.record(material.planned(material.case(1))))
        assert are_aside(path, 1)
        with pytest.raises(StoreWriteFailed):
            run.finish("complete")
    assert told.value.exit_status == 1
    assert path.read_bytes() == good.read_bytes()
    assert runs(path) == runs(good)
    assert maintain.check(str(path)) == []


def test_what_was_kept_of_the_log_is_whole_beside_the_file_it_is_of(path: Path, good: Path) -> None:
    with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
        run.record(material.record())
        path.rename(path.with_name("old.db"))
        exchange(path, good)
        with pytest.raises(StoreWriteFailed):
            run.finish("complete")
    path.with_name("s.db-wal.orphan-1").rename(path.with_name("old.db-wal"))
    with Store.open(str(path.with_name("old.db"))) as store, store.resume_run("latest") as again:
        assert (again.run, len(again.finished)) == (run.run, 1)


def test_a_store_that_went_back_to_its_place_after_the_log_was_moved_is_not_written_on(path: Path, good: Path) -> None:
    with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
        path.rename(path.with_name("old.db"))
        exchange(path, good)
        for _ in range(2):
            with pytest.raises(StoreWriteFailed):
                run.record(material.record())
            if path.with_name("old.db").exists():
                path.with_name("old.db").replace(path)


def test_a_store_that_is_moved_away_and_back_has_everything(path: Path) -> None:
    elsewhere = path.with_name("elsewhere.db")
    with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
        run.record(material.record())
        path.rename(elsewhere)
        with pytest.raises(StoreWriteFailed, match=r"put it back, or start a new run$"):
            run.record(material.record(material.planned(material.case(1))))
    elsewhere.rename(path)
    with Store.open(str(path)) as store, store.resume_run("latest") as again:
        assert (again.run, len(again.finished)) == (run.run, 1)


def test_the_log_of_who_writes_the_new_file_is_left_to_it(path: Path) -> None:
    with Store.open(str(path)) as old, old.start_run(material.run_start()) as run:
        path.unlink()
        with Store.open(str(path)) as new, new.start_run(material.run_start()) as other:
            with pytest.raises(StoreWriteFailed):
                run.record(material.record())
            other.record(material.record())
            assert {"s.db-wal", "s.db-shm"} <= set(beside(path))
            other.finish("complete")
    assert runs(path) == [other.run]
    assert maintain.check(str(path)) == []


OPENED: dict[str, Callable[[Path], object]] = {
    "run": lambda path: Store.open(str(path)).close(),
    "prune": lambda path: maintain.prune(str(path), runs=["2"]),
    "vacuum": lambda path: maintain.vacuum(str(path)),
    "upgrade": lambda path: maintain.upgrade(str(path)),
    "rebuild": lambda path: maintain.rebuild(str(path), lambda _: None),
    "merge": lambda path: maintain.merge(str(path.with_name("source.db")), str(path)),
}


@pytest.mark.parametrize("question", OPENED)
@pytest.mark.parametrize("index", [True, False], ids=["with the log's index", "without"])
def test_nothing_opens_a_store_for_writing_beside_a_log_that_is_anothers(
    path: Path, good: Path, question: str, index: bool
) -> None:
    if question == "merge":
        fill(path.with_name("source.db"), 1)
    killed(path)
    exchange(path, good)
    if not index:
        path.with_name("s.db-shm").unlink()
    log = beside(path)["s.db-wal"]
    with pytest.raises(StoreUnusable) as told:
        OPENED[question](path)
    assert f"{path}-wal is not the log of store {path}, which is whole without it" in str(told.value)
    assert f"mv -n {path}-wal {path}-wal.orphan-1" in str(told.value)
    assert (path.read_bytes(), beside(path)["s.db-wal"]) == (good.read_bytes(), log)


def test_a_check_says_whose_the_log_is_not_and_moves_nothing(path: Path, good: Path) -> None:
    killed(path)
    exchange(path, good)
    log = beside(path)["s.db-wal"]
    (problem,) = maintain.check(str(path))
    assert problem.where == "log"
    assert f"{path}-wal is not the log of store {path}" in problem.what
    assert (path.read_bytes(), beside(path)["s.db-wal"]) == (good.read_bytes(), log)
    path.with_name("s.db-wal").rename(path.with_name("s.db-wal.orphan-1"))  # as it says
    assert maintain.check(str(path)) == []
    assert runs(path) == runs(good)


def test_a_log_that_would_bring_a_whole_other_store_back_is_found(path: Path, good: Path) -> None:
    """With every page in the log the file and the log together are whole, and another store."""
    source = path.with_name("source.db")
    fill(source, 2)
    _log_everything(source, path)
    exchange(path, good)
    (problem,) = maintain.check(str(path))
    assert "another store with it" in problem.what
    with pytest.raises(StoreUnusable, match="is not the log of store"):
        Store.open(str(path))
    assert path.read_bytes() == good.read_bytes()


def _log_everything(source: Path, path: Path) -> None:
    connection = sqlite3.connect(source, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    connection.execute("VACUUM")  # every page anew
    for suffix in ("", "-wal"):
        copyfile(f"{source}{suffix}", f"{path}{suffix}")
    connection.close()


def test_a_journal_that_is_anothers_is_found(path: Path, good: Path) -> None:
    _killed_in_a_journal(path)
    exchange(path, good)
    journal = beside(path)["s.db-journal"]
    (problem,) = maintain.check(str(path))
    assert f"{path}-journal is not the log of store {path}" in problem.what
    with pytest.raises(StoreUnusable, match="is not the log of store"):
        Store.open(str(path))
    assert (path.read_bytes(), beside(path)["s.db-journal"]) == (good.read_bytes(), journal)


def test_a_journal_that_is_its_own_is_rolled_back(path: Path) -> None:
    run = _killed_in_a_journal(path)
    assert maintain.check(str(path)) == []
    assert runs(path) == [run]


def test_no_room_for_a_copy_is_said_with_what_it_takes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _killed_in_a_journal(path)
    before = path.read_bytes(), beside(path)["s.db-journal"]

    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("suite.store.foreign.shutil.copyfile", full)
    needed = path.stat().st_size + Path(f"{path}-journal").stat().st_size
    with pytest.raises(StoreUnusable, match=f"takes {needed} bytes in .*No space left on device; set SQLITE_TMPDIR"):
        Store.open(str(path))
    assert (path.read_bytes(), beside(path)["s.db-journal"]) == before


def _killed_in_a_journal(path: Path) -> str:
    source = path.with_name("source.db")
    run = fill(source, 200)
    connection = sqlite3.connect(source, isolation_level=None)
    connection.execute("PRAGMA cache_size=5")
    connection.execute("BEGIN")
    connection.execute("UPDATE result SET reason = hex(randomblob(300))")  # more than the cache holds: written and synced
    for suffix in ("", "-journal"):
        copyfile(f"{source}{suffix}", f"{path}{suffix}")
    connection.rollback()
    connection.close()
    return run


def test_a_log_that_is_its_own_is_folded_in_also_beside_a_live_run(path: Path) -> None:
    with Store.open(str(path)) as store, store.start_run(material.run_start()) as live:
        for number in range(30):
            live.record(material.record(material.planned(material.case(number))))
            if number % 10 == 0:
                other = fill(path, 1)
                assert maintain.check(str(path)) == []
                maintain.prune(str(path), runs=[other])
        live.finish("complete")
    assert runs(path) == [live.run]


def test_a_damaged_store_with_its_own_log_is_not_blamed_on_the_log(path: Path) -> None:
    killed(path, 60)
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    found = maintain.check(str(path))
    assert found
    assert "log" not in {problem.where for problem in found}
    with pytest.raises(StoreUnusable, match="is damaged"):
        Store.open(str(path))
