"""The file of a report is whole or not there, and nothing stays beside it."""

import errno
import os
import signal
from pathlib import Path

import pytest

from suite.commands.report import _write
from suite.errors import UsageError


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
