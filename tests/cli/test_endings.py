"""How a run ends that lost its reader or its store: what is stored of it, and how it goes on."""

import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from suite import cli
from suite.commands.run import _Begun, _saying_how_to_go_on
from suite.events import Event, SweepFinished, SweepStarted
from suite.store.queries import Reader
from tests.cli.command import FAKE, TIME_LIMIT_S, Said, held_up, let_through, roofbench
from tests.cli.test_streams import TINY, shell

LONG = (*FAKE, "jobs.gemm.shapes=[64,128,256,512]")
CASES = 13


def ends(path: Path) -> list[tuple[str, str]]:
    """The status and reason of every run in a store."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute("select status, reason from run order by id").fetchall()
    finally:
        connection.close()


def in_mid_run(child: "subprocess.Popen[str]") -> str:
    """Wait until some cases are stored; the run's id."""
    assert child.stdout is not None
    first = next(line for line in child.stdout if line.startswith("run "))
    assert any(line.startswith("[ 4/13]") for line in child.stdout)
    return first.split()[1].rstrip(":")


def finished(child: "subprocess.Popen[str]") -> Said:
    out, err = child.communicate(timeout=TIME_LIMIT_S)
    return Said(child.returncode, out, err)


def test_a_reader_who_leaves_interrupts_the_run(tmp_path: Path) -> None:
    held = " ".join(let_through(2, tmp_path / "gate"))
    leaving = "{ read -r first; exec <&-; touch gate; }"
    said = shell(tmp_path, f"$R run {TINY} {held} | {leaving}; echo ${{PIPESTATUS[0]}}")
    assert said.out.splitlines()[-1] == str(cli.EXIT_PIPE_CLOSED)
    with Reader.open(str(tmp_path / "roofbench.db")) as reader:
        (info,) = reader.runs()
    assert said.err == f"roofbench: to go on: roofbench run resume={info.run}\n"
    assert ends(tmp_path / "roofbench.db") == [("interrupted", "the reader of the output went away")]
    assert roofbench(tmp_path, "run", "resume=latest").status == 0
    assert ends(tmp_path / "roofbench.db") == [("complete", "")]


@pytest.mark.parametrize("ended", [KeyboardInterrupt, BrokenPipeError])
def test_a_run_that_is_cut_short_says_how_to_go_on_until_it_is_complete(
    ended: type[BaseException], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second Ctrl-C, or a reader that leaves while the end is printed."""
    url = str(tmp_path / "s.db")

    def cut_short(events: Sequence[Event]) -> None:
        begun = _Begun()
        with _saying_how_to_go_on(url, begun):
            for event in events:
                begun.watching(lambda event: None)(event)
            raise ended

    def say(*events: Event) -> str:
        with pytest.raises(ended):
            cut_short(events)
        return capsys.readouterr().err

    started = SweepStarted("20260101T000000-abcd", 13, 0)
    line = f"roofbench: to go on: roofbench run resume={started.run} store.url={url}\n"
    assert say() == ""
    assert say(started) == line
    assert say(started, SweepFinished(started.run, "interrupted", "SIGINT received, 9 cases left", by_signal=True)) == line
    assert say(started, SweepFinished(started.run, "complete", "")) == ""


@pytest.mark.thorough
def test_a_second_signal_leaves_at_once_and_says_how_to_go_on(tmp_path: Path) -> None:
    with held_up(tmp_path, "run", *LONG) as (child, _):
        run = in_mid_run(child)
        child.send_signal(signal.SIGINT)
        child.send_signal(signal.SIGTERM)
        said = finished(child)
    assert said.status == 130
    assert said.err == f"roofbench: to go on: roofbench run resume={run}\nroofbench: interrupted\n"


def test_a_run_whose_store_was_moved_away_says_how_to_go_on_once_it_is_back(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with held_up(tmp_path, "run", *LONG, "store.url=s.db") as (child, go_on):
        run = in_mid_run(child)
        path.rename(tmp_path / "elsewhere.db")
        go_on()
        said = finished(child)
    assert said.status == 1
    assert said.err.startswith(f"roofbench: store {path} was removed, replaced or overwritten while it was open: put it back")
    assert said.err.endswith(f"; to go on: roofbench run resume={run} store.url={path}\n")
    (tmp_path / "elsewhere.db").rename(path)
    again = roofbench(tmp_path, *said.err.rpartition("to go on: roofbench ")[2].split())
    assert again.status == 0, again.err
    with Reader.open(str(path)) as reader:
        (info,) = reader.runs()
        assert (info.run, info.status, info.finished, len(reader.results())) == (run, "complete", CASES, CASES)


def test_a_run_whose_store_was_exchanged_leaves_the_new_one_alone(tmp_path: Path) -> None:
    good, path = tmp_path / "good.db", tmp_path / "roofbench.db"
    assert roofbench(tmp_path, "run", *FAKE, "store.url=good.db").status == 0
    with held_up(tmp_path, "run", *LONG) as (child, go_on):
        in_mid_run(child)
        shutil.copyfile(good, tmp_path / "n")
        (tmp_path / "n").replace(path)
        go_on()
        said = finished(child)
    assert said.status == 1
    assert "roofbench.db-wal.orphan-1" in said.err
    assert "to go on" not in said.err, "there is no such run in the store any more"
    assert roofbench(tmp_path, "show", "--json") == roofbench(tmp_path, "show", "--json", "--store", "good.db")
    assert roofbench(tmp_path, "store", "check").out == "roofbench.db is whole\n"
    assert path.read_bytes() == good.read_bytes()


def test_a_run_that_fills_its_disk_says_how_to_go_on(tmp_path: Path) -> None:
    said = shell(tmp_path, f"ulimit -f 300; $R run {TINY} 'jobs.gemm.shapes=[64,128,256,512]'")
    assert said.status == 1
    with Reader.open(str(tmp_path / "roofbench.db")) as reader:
        (info,) = reader.runs()
    assert said.err.endswith(f"file-size limit; to go on: roofbench run resume={info.run}\n")
    assert 0 < info.finished < CASES
    assert roofbench(tmp_path, "run", f"resume={info.run}").status == 0
    assert ends(tmp_path / "roofbench.db") == [("complete", "")]


def test_a_killed_run_whose_store_is_deleted_is_named_by_the_next_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "roofbench.db"
    with held_up(tmp_path, "run", *LONG) as (child, go_on):
        in_mid_run(child)
        child.send_signal(signal.SIGKILL)
        go_on()
        finished(child)
    path.unlink()
    log = Path(f"{path}-wal").read_bytes()
    said = roofbench(tmp_path, "run", *FAKE, f"wait_s={TIME_LIMIT_S:g}")
    assert said.status == 0, said.err
    told = [line for line in said.err.splitlines() if "orphan" in line]
    assert len(told) == 1
    assert f"{path}-wal.orphan-1" in told[0]
    assert Path(f"{path}-wal.orphan-1").read_bytes() == log
    assert ends(path) == [("complete", "")]
    assert roofbench(tmp_path, "store", "check").out == "roofbench.db is whole\n"


def test_a_slot_that_no_store_has_is_no_damage(tmp_path: Path) -> None:
    assert roofbench(tmp_path, "run", *FAKE).status == 0
    with Reader.open(str(tmp_path / "roofbench.db")) as reader:
        key = reader.results()[-1].case_key
    for slot in ("99999999999999999999", "9" * 5000, "7"):
        said = roofbench(tmp_path, "show", "latest", f"{key}@{slot}")
        assert (said.status, said.out) == (2, "")
        assert "has no result for a case" in said.err
        assert "damaged" not in said.err
    for same in ("0", "000", "٠"):
        assert roofbench(tmp_path, "show", "latest", f"{key}@{same}").status == 0
