"""Several processes on one store: side by side, killed at any moment, and taking over from each other."""

import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from suite.errors import UsageError
from suite.store import lease, maintain
from suite.store.queries import Reader
from suite.store.writer import Store
from tests.store import material

COUNT = 30


def child(path: Path, *what: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.store.child", str(path), *(str(each) for each in what)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Store.open(str(tmp_path / "store.db")) as store:
        return store.path


def test_two_processes_write_one_store_and_lose_nothing(path: Path) -> None:
    writers = [child(path, "new", COUNT, 0), child(path, "new", COUNT, COUNT // 2)]
    said = [writer.communicate()[0].split() for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    reader = Reader.open(str(path))
    runs = reader.runs()
    assert [run.status for run in runs] == ["complete", "complete"]
    stored = sorted(sorted(row.case_key for row in reader.results(run.run)) for run in runs)
    assert stored == sorted(sorted(keys) for keys in said)
    assert len(reader.results()) == 2 * COUNT
    assert maintain.check(str(path)) == []
    assert [entry.name for entry in path.parent.iterdir()] == ["store.db"]


def lock_on(path: Path) -> bool:
    """Whether this process holds a POSIX lock on the file, as the kernel tells it."""
    inode = f":{path.stat().st_ino} "
    return any(f" {os.getpid()} " in line and inode in line for line in Path("/proc/locks").read_text().splitlines())


@pytest.mark.parametrize("other", ["run", "check", "vacuum"])
def test_whoever_closes_the_store_beside_a_run_leaves_its_log_alone(path: Path, other: str) -> None:
    """A process that took itself for the last one would fold in and delete the log that the run goes on writing to."""
    with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
        for number in range(2):  # when the first of them leaves, and when there has been one before
            run.record(material.record(material.planned(material.case(number))))
            assert lock_on(path)
            if other == "run":
                process = child(path, "new", 1, 40 + number)
                process.communicate()
                assert process.returncode == 0
            else:
                command = [sys.executable, "-m", "suite.cli", "store", other, "--store", str(path)]
                subprocess.run(command, capture_output=True, check=False)
            assert Path(f"{path}-wal").exists()
        copy = path.with_name("killed.db")  # what another process finds where this one is killed now
        with closing(sqlite3.connect(path)) as seen, closing(sqlite3.connect(copy)) as target:
            seen.backup(target)
        run.finish("complete")
    for each in (copy, path):
        with Reader.open(str(each)) as reader:
            assert len(reader.results(run.run)) == 2
        assert maintain.check(str(path)) == []


@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.thorough)])
def test_a_writer_killed_at_random_moments_loses_nothing_and_doubles_nothing(path: Path, kills: int) -> None:
    draw = random.Random(11)
    told: list[str] = []
    for kill in range(kills):
        process = child(path, "resume" if kill else "new", 1_000_000)
        assert process.stdout is not None
        told += [process.stdout.readline().strip() for _ in range(draw.randrange(1, 12))]
        time.sleep(draw.random() * 0.02)  # into the middle of a commit, a lock, a checkpoint
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read()  # ``communicate`` would pass over lines that ``readline`` took in already
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        told += rest.split()
        _whole_with(path, told, kills)
    assert Reader.open(str(path)).resolve().status == "interrupted"
    finished = len(Reader.open(str(path)).results()) + 5
    last = child(path, "resume", finished)
    told += last.communicate()[0].split()
    assert last.returncode == 0
    rows = Reader.open(str(path)).results()
    assert sorted(row.case_key for row in rows) == sorted(material.case(number).key for number in range(finished))
    assert len(told) == len(set(told))
    assert [entry.name for entry in path.parent.iterdir()] == ["store.db"]


def _whole_with(path: Path, told: list[str], kills: int) -> None:
    """The file is sound, and every case that was reported stored is there, once."""
    connection = sqlite3.connect(path)
    assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    stored = [key for (key,) in connection.execute('select "case".key from result join "case" on "case".id = case_id')]
    connection.close()
    assert len(stored) == len(set(stored))
    assert set(told) <= set(stored)
    assert len(stored) <= len(told) + kills  # a kill may come between the commit and its report


def test_a_run_is_resumed_only_when_its_writer_is_gone(path: Path) -> None:
    holder = child(path, "hold")
    assert holder.stdout is not None
    run = holder.stdout.readline().strip()
    reader = Reader.open(str(path))
    assert reader.resolve().status == "running"
    with Store.open(str(path)) as store, pytest.raises(UsageError, match=f"{run} is being written by process {holder.pid} on "):
        store.resume_run("latest")
    with pytest.raises(UsageError, match="is being written"):
        maintain.prune(str(path), runs=[run])
    holder.kill()
    holder.communicate()
    assert reader.resolve().status == "interrupted"
    with Store.open(str(path)) as store, store.resume_run("latest") as again:
        assert reader.resolve().status == "running"
        again.finish("complete")
    assert reader.resolve().status == "complete"
    assert [entry.name for entry in path.parent.iterdir()] == ["store.db"]


def test_the_right_to_write_does_not_pass_to_a_child_process(path: Path) -> None:
    with Store.open(str(path)) as store:
        run = store.start_run(material.run_start())
        with subprocess.Popen(["sleep", "600"], close_fds=False) as outliving:
            run._lease.release()  # as the kernel does when the process dies
            with store.resume_run(run.run):
                pass
            outliving.kill()


def test_only_one_of_many_takes_a_run(path: Path) -> None:
    racers = [child(path, "take") for _ in range(3)]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    said = [racer.stdout.readline().strip() for racer in racers if racer.stdout]
    winner = racers[said.index("taken")]
    assert sorted(said) == [f"held by process {winner.pid} on {socket.gethostname()}"] * 2 + ["taken"]
    for racer in racers:
        racer.communicate()
    assert lease.holder(path, "race") is None


def test_asking_who_writes_does_not_stop_a_writer(path: Path) -> None:
    asking = True

    def ask() -> None:
        while asking:
            lease.holder(path, "asked")

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for _ in range(200):
            lease.take(path, "asked").release()
    finally:
        asking = False
        thread.join()


def test_a_reader_sees_each_result_as_soon_as_it_is_committed_and_delays_nobody(path: Path) -> None:
    with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
        reader = Reader.open(str(path))
        for number in range(5):
            run.record(material.record(material.planned(material.case(number))))
            assert len(reader.results()) == number + 1
        run.finish("complete")
        assert Path(f"{path}-wal").stat().st_size == 0
