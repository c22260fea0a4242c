"""Each command speaks of a store by the option that it really has, and each action of ``store`` teaches with examples."""

from pathlib import Path

import pytest

from suite import cli
from suite.commands import store


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
