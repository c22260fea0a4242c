"""Each command speaks of a store by the option that it really has, and each action of ``store`` teaches with examples."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from suite import cli
from suite.commands import store
from suite.selftest.record import Finding, Selftest, Status
from suite.store.writer import Store
from tests.report.stores import write_store


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "--store", "no.db"], "no store at {0}/no.db: run `roofbench run` first, or name one with --store PATH"),
        (["report", "--store", "text.db"], "{0}/text.db is not a database: choose another with --store PATH"),
        (["store", "check", "--store", "text.db"], "{0}/text.db is not a database: choose another with --store PATH"),
        (["store", "merge", "text.db"], "{0}/text.db is not a database: choose another as SOURCE"),
        (["store", "merge", "no.db"], "no store at {0}/no.db: run `roofbench run` first, or name one as SOURCE"),
        (["show", "--store", ""], "--store '' names no file: give a path such as roofbench.db"),
        (["store", "merge", ""], "SOURCE '' names no file: give a path such as roofbench.db"),
        (["plan", "resume=latest"], "no store at {0}/roofbench.db: run `roofbench run` first, or name one with store.url=PATH"),
        (["run", "resume=latest", "store.url=text.db"], "{0}/text.db is not a database: choose another with store.url=PATH"),
    ],
    ids=" ".join,
)
def test_the_remedy_is_one_that_the_command_takes(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.db").write_text("not a database, but long enough to be looked at " * 20)
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err == f"roofbench: {message.format(tmp_path)}\n"


@pytest.mark.parametrize("action", store.ACTIONS)
def test_each_action_teaches_with_examples(action: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["store", action, "--help"]) == 0
    said = capsys.readouterr().out
    examples = said.partition("examples:\n")[2].splitlines()
    assert len(examples) >= 2
    assert all(line.startswith(f"  roofbench store {action}") for line in examples)
    assert max(map(len, said.splitlines())) <= 132


@pytest.mark.parametrize("action", store.ACTIONS)
def test_the_examples_can_be_parsed(action: str) -> None:
    """What a help text shows must not be refused."""
    for line in store.EXAMPLES_OF[action].splitlines():
        words = line.partition("   ")[0].split(" | ")[0].split()
        args = cli.make_parser().parse_args(words[1:])
        assert args.action == action


def written(path: Path) -> str:
    """A run in a store, by its name; a made-up row's shares of a roof do not follow from its rate, as a check finds."""
    name = write_store(path, [])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update summary set fraction_spec = null, fraction_boost = null, fraction_at_clock = null")
    return name


@pytest.fixture
def judged(tmp_path: Path) -> list[str]:
    """A store ``here.db`` with two runs and a selftest that rests on both; their names."""
    runs = [written(tmp_path / "here.db") for _ in range(2)]
    finding = Finding("flush", Status.OK, "cold is cold")
    with Store.open(str(tmp_path / "here.db")) as opened:
        opened.record_selftest(
            Selftest("a1b2", "Testium T1", "cuda", tuple(runs), datetime(2031, 5, 6, tzinfo=UTC), (finding,))
        )
    return runs


def said_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert cli.main(["store", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_merge_says_which_selftests_it_brought(
    judged: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    merge = ("merge", "here.db", "--store", "there.db")
    assert said_of(capsys, *merge) == ["here.db: 2 runs and 2 results copied; 1 selftest copied"]
    assert said_of(capsys, *merge) == ["here.db: 0 runs and 0 results copied, 2 were there already"]


def test_a_merge_says_how_many_results_have_other_figures(
    judged: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    merge = ("merge", "here.db", "--store", "there.db")
    said_of(capsys, *merge)
    with closing(sqlite3.connect("there.db")) as connection, connection:
        connection.execute("update result set error_rel = 0.125 where id = 1")
    already = "here.db: 0 runs and 0 results copied, 2 were there already, 1 of them with other figures, which stay as they are"
    assert said_of(capsys, *merge) == [already]


def test_a_prune_says_what_becomes_of_selftests(
    judged: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    first, last = judged
    kept = "1 selftest kept: of the runs behind the verdict some are left"
    gone = "1 selftest {}: of the runs behind the verdict none is left"
    prune = ("prune", "--store", "here.db")
    assert said_of(capsys, *prune, first)[1:] == ["1 run with 1 result removed", kept]
    assert said_of(capsys, *prune, "--dry-run", last)[1:] == [
        "1 run with 1 result would be removed",
        gone.format("would be removed"),
    ]
    assert said_of(capsys, *prune, last)[1:] == ["1 run with 1 result removed", gone.format("removed")]


def test_one_of_a_kind_is_spoken_of_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "here.db")
    assert said_of(capsys, "merge", "here.db", "--store", "there.db") == ["here.db: 1 run and 1 result copied"]
    assert said_of(capsys, "merge", "here.db", "--store", "there.db") == [
        "here.db: 0 runs and 0 results copied, 1 was there already"
    ]
    assert said_of(capsys, "rebuild", "--everything", "--store", "here.db") == ["here.db: 1 result derived anew"]


def test_a_merge_looks_at_every_source_before_it_copies_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("good.db", "odd.db"):
        written(tmp_path / name)
    with closing(sqlite3.connect(tmp_path / "odd.db")) as connection, connection:
        connection.execute("update result set device_slot = -5")
    (tmp_path / "text.db").write_text("not a database, but long enough to be looked at " * 20)
    for bad, why in (("odd.db", "is damaged"), ("text.db", "is not a database"), ("no.db", "no store at"), ("m.db", "itself")):
        if bad == "m.db":
            written(tmp_path / "m.db")
        assert cli.main(["store", "merge", "good.db", bad, "--store", "m.db"]) == 2
        said = capsys.readouterr()
        assert (said.out, why in said.err) == ("", True)
        assert (tmp_path / "m.db").exists() is (bad == "m.db")


@pytest.mark.parametrize("action", ["vacuum", "rebuild", "upgrade", "prune"])
def test_maintenance_of_no_store_says_with_which_option_one_is_named(
    action: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["store", action, *(["RUN"] if action == "prune" else [])]) == 2
    assert capsys.readouterr().err.endswith("run `roofbench run` first, or name one with --store PATH\n")
