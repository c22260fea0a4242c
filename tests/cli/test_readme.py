"""Every command and setting that the README or a help text prints is one: composed, and planned on two cores and an H200."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from backends.telemetry.reasons import NVIDIA
from suite import cli
from suite.commands.plan import make, nothing_left
from suite.config import compose
from suite.config.multirun import _combinations
from suite.config.overrides import parse
from suite.plan import plan
from tests.config.test_limits import CPU
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()
H200 = "nvidia-h200-sxm5-141gb"
# Words that stand for something of the reader's, and settings that are named and not set.
PLACEHOLDERS = {"RUN": "latest", "CASE": "3f2a", "DIR": "mine", "PATH": "some.db", "key=value": None}


def blocks() -> Iterator[str]:
    """Lines of indented code without their remarks."""
    for line in README.splitlines():
        if line.startswith("    "):
            yield re.sub(r"\s# .*", "", line).strip()


def spans() -> Iterator[str]:
    """Inline code, which may go over the end of a line."""
    text = "\n".join(line for line in README.splitlines() if not line.startswith("    "))
    for found in re.findall(r"`([^`]+)`", text):
        yield " ".join(found.split())


def commands() -> Iterator[str]:
    """Without where their output goes."""
    yield from (text.partition(" > ")[0] for text in (*blocks(), *spans()) if text.startswith("roofbench "))


def settings() -> Iterator[list[str]]:
    for text in spans():
        words = text.split() if text.startswith("'") else [text]
        found = [word.strip("'") for word in words]
        if all(re.fullmatch(r"[a-z_][\w.]*=\S+", word) and word not in PLACEHOLDERS for word in found):
            yield found


def examples() -> Iterator[str]:
    """Of the commands' help, without their remarks."""
    for name in cli.COMMANDS:
        text = import_module(f"suite.commands.{name}").EXAMPLES
        yield from (re.split(r"  +| [|>] ", line)[0] for line in text.splitlines())


COMMANDS = sorted({*commands(), *examples()})
MEASURING = [text for text in COMMANDS if text.split()[1] in ("run", "plan")]
SETTINGS = sorted({tuple(found) for found in settings()})


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with what ``DIR`` stands for, and the experiment that the README shows as one's own."""
    own = tmp_path / "mine" / "experiment"
    own.mkdir(parents=True)
    text = "\n".join(line[4:] for line in README.splitlines() if line.startswith("    "))
    shown = re.search(r"# @package _global_\njobs:\n(?: .*\n)+", text)
    assert shown is not None
    for name in ("mine", "again"):
        (own / f"{name}.yaml").write_text(shown[0])
    monkeypatch.chdir(tmp_path)


def words_of(text: str) -> list[str]:
    words = shlex.split(text)[1:]
    for placeholder, meaning in PLACEHOLDERS.items():
        words = [re.sub(rf"\b{placeholder}\b", meaning, word) if meaning else word for word in words]
    return words


def runs_of(text: str) -> Iterator[tuple[list[str], Path | None]]:
    """The overrides of each run that a command makes, with the folder of the user's own."""
    args, extra = cli.make_parser().parse_known_args(words_of(text))
    cli._take_scattered(args, extra)
    sets = _combinations(args.overrides) if getattr(args, "multirun", False) else [args.overrides]
    yield from ((list(overrides), args.config_dir) for overrides in sets)


def test_the_readme_has_commands_to_try() -> None:
    assert len(COMMANDS) > 20
    assert len(MEASURING) > 10
    assert ("measure.interleave=10",) in SETTINGS


@pytest.mark.parametrize("text", COMMANDS)
def test_every_command_is_understood(text: str) -> None:
    if "--help" in text:
        assert cli.main(words_of(text)) == 0
        return
    args, extra = cli.make_parser().parse_known_args(words_of(text))
    cli._take_scattered(args, extra)
    assert args.command == words_of(text)[0]


@pytest.mark.parametrize("text", MEASURING)
def test_every_run_measures_something_on_two_cores_and_on_an_h200(text: str) -> None:
    for overrides, folder in runs_of(text):
        measures_something([each for each in overrides if parse(each).key_or_group != "resume"], folder)


@pytest.mark.parametrize("overrides", SETTINGS, ids=" ".join)
def test_every_setting_of_the_readme_is_one_that_a_run_takes(overrides: tuple[str, ...]) -> None:
    """As it is printed, alone: what needs another beside it has to say so."""
    measures_something([each for each in overrides if parse(each).key_or_group != "resume"], None)


def measures_something(overrides: list[str], folder: Path | None) -> None:
    """Also a resumed run's settings, which are its own: here those of a new one."""
    config = compose(overrides, folder)
    cases = plan(config, [CPU], ())
    assert nothing_left(config, [CPU], cases) == ""
    if not any(parse(each).key_or_group in ("backend", "hardware") for each in overrides):
        planned = make(replace(config, hardware=H200))
        assert nothing_left(planned.config, planned.slots, planned.cases) == ""
        assert planned.unchecked == ""


def test_the_readme_says_in_a_line_what_each_column_and_mark_is() -> None:
    section = README.partition("## Read a result")[2].partition("\n## ")[0]
    entries = [" ".join(entry.split()) for entry in section.split("\n- ")]
    for word in ("of spec", "of boost", "at clock", "empirical", "pipe", "layout"):
        assert [entry for entry in entries if entry.startswith(f"**{word}**")], word
    (empirical,) = (entry for entry in entries if entry.startswith("**empirical**"))
    assert "best verified rate of the same load" in empirical
    for reason in NVIDIA.values():
        assert f"`{reason}`" in section or reason == "sync_boost", reason


def test_max_time_s_says_that_the_case_in_flight_ends() -> None:
    (line,) = (line for line in (ROOT / "configs/run.yaml").read_text().splitlines() if line.startswith("max_time_s:"))
    assert "no case starts after this long, the one in flight ends" in line
