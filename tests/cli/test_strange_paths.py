"""A path with a line break or an escape sequence reaches no terminal as it is, and a command that names it can be typed."""

import subprocess
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suite import cli
from suite.commands import opening
from suite.commands.dashboard import refuse_store
from suite.commands.known import look
from suite.commands.options import store_option, store_override
from suite.commands.selftest import _left
from suite.config.overrides import parse
from suite.errors import UsageError
from suite.paths import for_shell, shown
from suite.store import schema
from suite.store.maintain import check
from suite.store.queries import Reader
from suite.store.writer import Store
from suite.targets.told import Teller
from tests.cli.command import FAKE, roofbench

STRANGE = "a\nb\x1b[31m\u202e.db"
SHOWN = r"a\nb\x1b[31m\u202e.db"
NO_TEXT = "nu\udcff8"
RAW = ("\x1b", "\u202e", "a\nb")


def told_by_bash(words: str) -> list[str]:
    """The words that bash makes of what is to be typed."""
    printed = subprocess.run(["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True).stdout
    return printed.decode("utf-8", "surrogateescape").split("\0")[:-1]


@pytest.mark.parametrize("text", [STRANGE, "it's\n\\n", "plain.db", "a b.db", "\udc80é\t1", "\x1bf0"])
def test_what_is_to_be_typed_is_printable_and_means_the_same(text: str) -> None:
    assert for_shell(text).isprintable()
    assert told_by_bash(for_shell(text)) == [text]


def test_the_store_that_a_command_names_is_the_same_store() -> None:
    path = Path("/d") / STRANGE
    assert told_by_bash(store_option(path)) == ["--store", str(path)]
    (word,) = told_by_bash(store_override(path))
    assert store_override(path).isprintable()
    assert parse(word).value() == str(path)


def test_a_store_in_a_folder_whose_name_is_no_text_is_named_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that stand for no character can be opened and typed; as a setting, which is text, they are refused."""
    folder = tmp_path / NO_TEXT
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert store_override(folder / "roofbench.db") == ""
    assert store_override(folder / "a b.db") == """ 'store.url='"'"'a b.db'"'"''"""
    assert told_by_bash(store_option(folder / "b.db")) == ["--store", str(folder / "b.db")]


def test_a_store_whose_path_is_no_text_is_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / NO_TEXT / f"{NO_TEXT}.db"
    path.parent.mkdir()
    Store.open(str(path)).close()
    assert path.exists()
    with Reader.open(str(path)) as reader:
        assert reader.runs() == []
    assert check(str(path)) == []


def test_the_dashboard_refuses_what_its_server_ends_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / NO_TEXT / "b.db"
    path.parent.mkdir()
    Store.open(str(path)).close()
    with pytest.raises(UsageError, match=r"b\.db', whose name or folder is no UTF-8 text; move or rename it"):
        refuse_store(str(path))
    monkeypatch.chdir(path.parent)
    with pytest.raises(UsageError, match="is no UTF-8 text; change to another folder"):
        cli.run(["dashboard"])


def test_a_run_says_where_it_is_stored_and_how_to_go_on_without_raw_characters(tmp_path: Path) -> None:
    """One that is ended by its time limit names the store in each line that can."""
    said = roofbench(tmp_path, "run", *FAKE, f"store.url='{STRANGE}'", "max_time_s=1e-9")
    assert (tmp_path / STRANGE).exists(), said.err
    assert not [raw for raw in RAW if raw in said.out + said.err]
    assert f"stored in '{tmp_path}/{SHOWN}'\n" in said.out
    (again,) = [line for line in said.out.splitlines() if line.startswith("to go on: ")]
    *_, word = told_by_bash(again.removeprefix("to go on: "))
    assert parse(word).value() == str(tmp_path / STRANGE)


def test_a_sweep_says_what_it_runs_without_raw_characters(tmp_path: Path) -> None:
    said = roofbench(tmp_path, "run", "-m", *FAKE, f"store.url='{STRANGE}'", "note='\x1b[2J'", "seed=1,2", "oversize=record")
    assert said.status == 0, said.err
    assert not [raw for raw in RAW if raw in said.out + said.err]


def test_what_was_upgraded_or_moved_aside_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / STRANGE
    migrated: Any = SimpleNamespace(orphans=[path], backup=path)
    store: Any = SimpleNamespace(path=path, migrated=migrated)
    opening._say_what_was_done(store)
    quoted = f"'{tmp_path}/{SHOWN}'"
    assert capsys.readouterr().err.splitlines() == [
        f"roofbench: {quoted} was gone, but not what lay beside it: kept as {quoted}; nothing of it is in the new store",
        f"roofbench: store upgraded; the one before is kept as {quoted}",
    ]


def test_a_plan_tells_of_an_older_store_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / STRANGE
    path.write_bytes(b"x")
    monkeypatch.setattr(schema, "look", lambda path: SimpleNamespace(state="older"))
    slot: Any = SimpleNamespace(info=SimpleNamespace(uid="u"))
    assert look(str(path), [slot], None).unread.startswith(f"what {shown(path)} has is not counted")


def test_what_is_left_of_a_selftest_or_a_matrix_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / STRANGE
    progress: Any = SimpleNamespace(runs=["r"], stored=1, total=2)
    store: Any = SimpleNamespace(path=path)
    assert f"stored in {shown(path)} (runs r)" in _left(progress, store)
    stream = StringIO()
    Teller(stream, 3).interrupted(str(path))
    assert stream.getvalue().endswith(f"what was compiled is in {shown(path)}\n")
