"""When the disk is full or the file is gone: one line, everything before intact, and the same case again later."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from suite import cli
from suite.errors import RoofbenchError, StoreUnusable, StoreWriteFailed
from suite.store import maintain, sqlite
from suite.store.files import LEAST_FREE_BYTES
from suite.store.integrity import flaws
from suite.store.queries import Reader
from suite.store.writer import RunWriter, Store
from tests.patience import PATIENCE_S
from tests.store import material
from tests.store.places import small_disk


def record(run: RunWriter, number: int) -> None:
    run.record(material.record(material.planned(material.case(number))))


def until_it_fails(run: RunWriter) -> tuple[int, str]:
    """Record until that fails; the number of the case that failed, and the message."""
    for number in range(100_000):
        try:
            record(run, number)
        except StoreWriteFailed as error:
            return number, str(error)
    raise AssertionError("the disk never filled")


def test_a_full_disk_costs_only_the_case_in_flight(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "3m") as disk:
        path, ballast = disk / "s.db", disk / "ballast"
        with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
            number, message = until_it_fails(run)
            assert message == f"no space left for store {path}: free some; what was committed before is intact"
            assert number > 10
            reader = Reader.open(str(path))
            assert len(reader.results()) == number
            with pytest.raises(StoreWriteFailed):
                record(run, number)
            subprocess.run(["mount", "-o", "remount,size=6m", str(disk)], check=True)
            for again in range(number, number + 20):
                record(run, again)
            run.finish("complete")
        assert len(Reader.open(str(path)).results()) == number + 20
        assert maintain.check(str(path)) == []
        ballast.write_bytes(b"x" * (os.statvfs(disk).f_bavail * 4096 - 4096))
        with pytest.raises(StoreUnusable, match="bytes are free on its disk"):
            Store.open(str(path))
        with pytest.raises(StoreUnusable, match="bytes are free on its disk"):
            Store.open(str(disk / "new.db"))
        assert len(Reader.open(str(path)).results()) == number + 20
        with pytest.raises(StoreUnusable, match=f"cannot be vacuumed: that takes up to .* MB in {disk} .* and as much in /"):
            maintain.vacuum(str(path))
        assert sorted(entry.name for entry in disk.iterdir()) == ["ballast", "s.db"]


def test_a_run_can_be_pruned_on_a_disk_that_is_too_full_for_a_new_one(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "6m") as disk:
        path, ballast = disk / "s.db", disk / "ballast"
        with Store.open(str(path)) as store:
            for _ in range(2):
                with store.start_run(material.run_start()) as run:
                    for number in range(20):
                        record(run, number)
                    run.finish("complete")
        ballast.write_bytes(b"x" * (os.statvfs(disk).f_bavail * 4096 - LEAST_FREE_BYTES * 3 // 4))
        with pytest.raises(StoreUnusable, match="bytes are free on its disk"):
            Store.open(str(path))
        assert maintain.prune(str(path), runs=[run.run]).results == 20
        assert len(Reader.open(str(path)).results()) == 20


def test_a_run_on_a_disk_that_stays_full_ends_in_one_line_and_is_resumed_elsewhere(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "3m") as disk:
        path = disk / "s.db"
        with pytest.raises(StoreWriteFailed, match="no space left"), Store.open(str(path)) as store:
            _fill(store)
        (tmp_path / "roomy.db").write_bytes(path.read_bytes())
        if Path(f"{path}-wal").exists():
            (tmp_path / "roomy.db-wal").write_bytes(Path(f"{path}-wal").read_bytes())
    with Store.open(str(tmp_path / "roomy.db")) as store, store.resume_run("latest") as run:
        finished = len(run.finished)
        assert finished > 10
        record(run, finished)
    assert maintain.check(str(tmp_path / "roomy.db")) == []


def test_a_store_whose_log_has_no_room_to_be_taken_in_is_whole_and_said_to_need_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_disk(tmp_path / "small", "6m") as disk:
        path, ballast = disk / "s.db", disk / "ballast"
        with pytest.raises(StoreWriteFailed, match="no space left"), Store.open(str(path)) as store:
            _fill(store, ballast)
        kept = len(Reader.open(str(path)).results())
        assert cli.main(["store", "check", "--store", str(path)]) == 0
        said = capsys.readouterr()
        assert said.out == f"{path} is whole\n"
        assert said.err.startswith(f"roofbench: the disk of store {path} is full, and part of it is in its log {path}-wal: ")
        assert said.err.endswith("; free some, and keep the log beside it until then\n")
        ballast.unlink()
        assert cli.main(["store", "check", "--store", str(path)]) == 0
        assert capsys.readouterr().err == ""
        assert not sqlite.unfinished(path)
        assert len(Reader.open(str(path)).results()) == kept


def test_pages_that_the_log_has_are_not_missed_and_those_that_it_has_not_are(tmp_path: Path) -> None:
    """What a log that could only be taken in in part leaves: a header that counts pages which the file does not have yet."""
    path, begun, cut = tmp_path / "s.db", tmp_path / "begun.db", tmp_path / "cut.db"
    with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
        size = path.stat().st_size
        for number in range(30):
            record(run, number)
        content, log = bytearray(path.read_bytes()), Path(f"{path}-wal").read_bytes()
    assert path.stat().st_size > size == len(content)
    content[28:32] = (path.stat().st_size // 4096).to_bytes(4, "big")
    begun.write_bytes(content)
    cut.write_bytes(content[: len(content) // 3 // 4096 * 4096])
    for each in (begun, cut):
        Path(f"{each}-wal").write_bytes(log)
    assert list(flaws(begun)) == []
    assert f"it was cut: it has {cut.stat().st_size} of {path.stat().st_size} bytes" in [flaw.what for flaw in flaws(cut)]
    Path(f"{begun}-wal").unlink()
    assert f"it was cut: it has {size} of {path.stat().st_size} bytes" in [flaw.what for flaw in flaws(begun)]


def _fill(store: Store, ballast: Path | None = None) -> None:
    """Until the disk is full; with ``ballast``, which takes what is left of it after some results."""
    with store.start_run(material.run_start()) as run:
        for number in range(100_000):
            record(run, number)
            if ballast and number == 7:
                ballast.write_bytes(b"x" * (os.statvfs(ballast.parent).f_bavail * 4096 - 8192))


def test_a_file_size_limit_ends_a_writer_in_one_line(tmp_path: Path) -> None:
    """As a quota or ``ulimit -f`` does; needs no rights, so that everyone runs it."""
    path = tmp_path / "s.db"
    with Store.open(str(path)):
        pass
    command = [sys.executable, "-m", "tests.store.child", "--file-limit", str(2**20), str(path), "new", "5000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    *told, last = done.stdout.splitlines()
    assert last.startswith(f"StoreWriteFailed: the disk under store {path} failed"), done.stdout[-300:] + done.stderr[-300:]
    assert "file-size limit" in last
    assert (done.returncode, done.stderr) == (1, "")
    assert sorted(row.case_key for row in Reader.open(str(path)).results()) == sorted(told)
    with Store.open(str(path)) as store, store.resume_run("latest") as run:
        assert len(run.finished) == len(told)
        record(run, len(told))
    assert maintain.check(str(path)) == []


def test_a_file_size_limit_refuses_a_new_store_with_nothing_left_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.store.child", "--file-limit", str(50_000), str(tmp_path / "s.db"), "new", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2, done.stderr
    assert done.stdout.startswith("StoreUnusable: ")
    assert str(tmp_path / "s.db") in done.stdout
    assert len(done.stdout.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def removed(path: Path) -> None:
    path.unlink()


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replaced(path: Path) -> None:
    path.rename(path.with_name("old.db"))
    path.write_bytes(path.with_name("old.db").read_bytes())


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def overwritten(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(b"x" * size)


@pytest.mark.parametrize("lose", [removed, moved, replaced, emptied, overwritten])
def test_a_store_that_is_lost_stops_the_run_instead_of_writing_nowhere(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    path = tmp_path / "s.db"
    with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
        record(run, 0)
        lose(path)
        with pytest.raises(StoreWriteFailed, match="was removed, replaced or overwritten while it was open"):
            record(run, 1)
        with pytest.raises(RoofbenchError, match="was removed, replaced or overwritten"):
            run.finish("complete")


def test_closing_leaves_alone_what_took_the_stores_place(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store.open(str(path)):
        path.rename(tmp_path / "old.db")
        connection = sqlite3.connect(path)
        connection.execute("pragma journal_mode=wal")
        connection.execute("create table theirs (a)")
        connection.close()
        theirs = path.read_bytes()
    assert path.read_bytes() == theirs
