"""A store is named by an option or by a setting; written the other way, each command says how it is named there."""

import pytest

from suite import cli

READING = [
    ["show"], ["show", "latest"], ["show", "--runs"], ["compare"], ["compare", "a", "b"], ["report"], ["dashboard"],
    ["import", "some.log"], ["store", "check"], ["store", "merge", "other.db"],
]  # fmt: skip
MEASURING = ["run", "plan"]


@pytest.fixture(autouse=True)
def _empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", READING, ids=" ".join)
@pytest.mark.parametrize("setting", ["store.url=mine.db", "++store.url=mine.db"])
def test_a_setting_for_a_command_that_reads_is_answered_with_the_option(command, setting, capsys, tmp_path):
    assert cli.main([*command, setting]) == 2
    said = capsys.readouterr()
    program = " ".join(["roofbench", *command[: 1 + (command[0] == "store")]])
    assert (said.out, said.err) == ("", f"roofbench: {setting} is a setting, and {program} takes none; write --store mine.db\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", MEASURING)
def test_an_option_for_a_command_that_measures_is_answered_with_the_setting(command, capsys, tmp_path):
    assert cli.main([command, "--store=mine.db"]) == 2
    said = capsys.readouterr().err
    assert (
        said
        == f"roofbench: unknown option '--store' for roofbench {command}, whose store is a setting; write store.url=mine.db\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["report", "--output", "store.url=x"], ["show", "--store", "store.url=x"]], ids=" ".join)
def test_what_is_an_option_s_value_is_no_setting(command, capsys):
    assert cli.main(command) == 2
    assert "is a setting" not in capsys.readouterr().err
