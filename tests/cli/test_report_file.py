"""The file of a report is whole or not there, and nothing stays beside it."""

import errno
import os
import shlex
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from suite.commands.report import DATA, _is_page, _refuse_another, _write
from suite.errors import UsageError
from tests.cli.command import FAKE, roofbench
from tests.report.builders import run_info


def read_only(*_: object, **__: object) -> int:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_a_read_only_file_system_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "write_text", read_only)
    monkeypatch.setattr(Path, "unlink", read_only)
    with pytest.raises(UsageError, match=r"^--output \S+ cannot be written: Read-only file system; choose another place$"):
        _write(tmp_path / "x.html", "text")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_being_told_to_end_leaves_nothing_half_written(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(self: Path, target: Path) -> None:
        assert self.exists()
        os.kill(os.getpid(), number)

    monkeypatch.setattr(Path, "replace", told)
    with pytest.raises(KeyboardInterrupt):
        _write(tmp_path / "x.html", "text")
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "x.html").write_text("before")
    _write(tmp_path / "x.html", "after")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("x.html", "after")]


def page(file: Path, run: str, started_at: str = "2031-05-01T12:00:00+00:00") -> None:
    file.write_text(f'<!doctype html>{DATA}{{"format":1,"runs":[{{"run":"{run}","started_at":"{started_at}"}}]}}</script>')


def test_a_page_of_the_same_run_is_written_anew_and_no_other_file(tmp_path: Path) -> None:
    file, info = tmp_path / "report.html", run_info(run="20310501T1200")
    page(file, info.run, info.started_at)
    assert _is_page(file)
    _refuse_another(file, [info, info])
    page(file, info.run, "2030-01-01T00:00:00+00:00")
    with pytest.raises(UsageError, match=r"is there already, of run 20310501T1200; name another file, or replace it"):
        _refuse_another(file, [info])
    page(file, "20310501T1300")
    with pytest.raises(UsageError, match=r"is there already, of run 20310501T1300;"):
        _refuse_another(file, [info])
    with pytest.raises(UsageError, match=r"is there already"):
        _refuse_another(file, [info, replace(info, run="20310501T1300")])


@pytest.mark.parametrize("text", ["", "<html></html>", DATA, f"{DATA}{{}}", f'{DATA}{{"runs":[1]}}', f"{DATA}[]"])
def test_what_only_resembles_a_page_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.html").write_text(text)
    assert not _is_page(tmp_path / "x.html")
    assert not _is_page(tmp_path / "none.html")


def test_the_hint_after_a_run_works_where_it_is_printed_and_works_again(tmp_path: Path) -> None:
    """`make bench` prints it beside report.html, which it has just written."""
    ended = roofbench(tmp_path, "run", *FAKE)
    (hint,) = [line for line in ended.out.splitlines() if line.startswith("a page to publish: ")]
    command = shlex.split(hint.removeprefix("a page to publish: roofbench "))
    assert roofbench(tmp_path, "report").status == 0
    assert roofbench(tmp_path, "report").status == 0
    other = tmp_path / "report.html"
    other.write_text("of another")
    for _ in range(2):
        said = roofbench(tmp_path, *command)
        assert (said.status, said.err) == (0, "")
    refused = roofbench(tmp_path, "report")
    assert refused.status == 2
    assert other.read_text() == "of another"
