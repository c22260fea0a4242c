"""A run that was composed from a folder of the user's own is handed on as one file, and measures the same cases from it."""

import json
import re
import shutil
import sys
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from suite import cli
from suite.config import compose
from suite.experiment_file import LEFT_OUT, command_of, experiment_file, missing_elsewhere, own_folder
from suite.report.privacy import Scrubber
from suite.report.reproduce import rerun_command
from suite.store.queries import Reader
from tests.cli.command import CONFIGS, FAKE
from tests.report.builders import run_info

OWN = {
    "measure/mine.yaml": "defaults:\n  - /schema/measure@_here_\n  - _self_\nsteady_window_s: 0.01\nmax_time_s: 0.2\n",
    "experiment/mine.yaml": (
        "# @package _global_\ndefaults:\n  - override /measure: mine\n  - _self_\n"
        "jobs:\n  gemm:\n    formats: [fp32, bf16]\n    shapes: [32x64x96]\n    distributions: [zeros]\n"
    ),
}


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder with a backend, settings and an experiment of the user's own."""
    folder = tmp_path / "mine"
    shutil.copytree(CONFIGS, folder)
    for name, text in OWN.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert cli.main(list(arguments)) == 0
    return capsys.readouterr().out


def keys(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    return [row["case_key"] for row in json.loads(said(capsys, *arguments, "--json"))]


def save(folder: Path, text: str) -> Path:
    (folder / "experiment").mkdir(parents=True)
    (folder / "experiment" / "again.yaml").write_text(text)
    return folder


def test_the_file_of_a_stored_run_measures_the_same_cases_elsewhere(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    line = ("run", "--config-dir", str(mine), "backend=fake", "experiment=mine", "store.url=first.db")
    monkeypatch.setattr(sys, "argv", ["roofbench", *line])
    ran = said(capsys, *line)
    (hint,) = re.findall(r"for others: roofbench (.*)", ran)
    assert hint in said(capsys, "show", "--store", "first.db")
    text = said(capsys, *hint.split())
    shutil.rmtree(mine)
    elsewhere = save(tmp_path / "elsewhere", text)
    said(capsys, "run", "--config-dir", str(elsewhere), "experiment=again", "store.url=second.db")
    assert keys(capsys, "show", "--store", "first.db") == keys(capsys, "show", "--store", "second.db")
    with Reader.open("first.db") as first, Reader.open("second.db") as second:
        before, after = first.resolve().config, second.resolve().config
    assert {**before, **dict.fromkeys(LEFT_OUT)} == {**after, **dict.fromkeys(LEFT_OUT)}
    said(capsys, "report", "--store", "first.db", "-o", "r.md")
    published = (tmp_path / "r.md").read_text()
    assert "roofbench run --config-dir DIR experiment=again" in published
    assert str(mine) not in published


def test_the_report_of_such_a_run_says_which_file_to_save_and_what_to_type(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    composed = compose(["backend=fake", "experiment=mine"], mine)
    info = run_info(argv=("roofbench", "run", "--config-dir", str(mine)), config=json.loads(json.dumps(asdict(composed))))
    command = rerun_command(info, Scrubber())
    assert command.line == "roofbench run --config-dir DIR experiment=again"
    assert command.needs_file
    assert any("save the settings below as DIR/experiment/again.yaml first" in text for text in command.cautions)
    assert any("backend fake is tests.fake.backend:FakeBackend, which is no part of roofbench" in t for t in command.cautions)
    again = compose(["experiment=again"], save(tmp_path / "elsewhere", command.file))
    assert {name: value for name, value in asdict(again).items() if name not in LEFT_OUT} == {
        name: value for name, value in asdict(composed).items() if name not in LEFT_OUT
    }


@pytest.mark.parametrize(
    "overrides",
    [
        ["experiment=standard", "backend=[cpu,cuda]", "device=[0,1]"],
        ["measure=precise", "jobs.gemm.shapes=[]", "jobs.gemm.models=[llama-3-8b]", "jobs.gemm.m=[3]", "device='MIG 1g.18gb'"],
        [
            "experiment=null",
            "seed=7",
            "hardware=mi300x",
            r"note='a: \${b} # {c}, ü'",
            "max_time_s=1e-3",
            "jobs.gemm.emulation=[none]",
        ],
        ["backend=cpu", "++backends.cpu.target=mine:Cpu", "++backends.cpu.options={threads:3,deep:{a:[1,2]}}"],
        [],
    ],
)
def test_every_composition_comes_back_from_its_file(overrides: list[str], tmp_path: Path) -> None:
    composed = compose(overrides)
    again = compose(["experiment=again"], save(tmp_path, experiment_file(asdict(composed), "a run")))
    unlike = {name for name, value in asdict(composed).items() if asdict(again)[name] != value}
    assert unlike <= {"experiment", "hardware_folders"}
    assert again.hardware == composed.hardware


def test_a_sheet_of_the_user_s_own_is_named_as_missing_elsewhere() -> None:
    built_in: dict[str, Any] = {"hardware": "amd-mi300x", "hardware_folders": []}
    assert missing_elsewhere(built_in) == []
    assert command_of(built_in) == "roofbench run --config-dir DIR experiment=again"
    named: dict[str, Any] = {"hardware": "acme", "hardware_folders": ["/x/hardware"]}
    unnamed: dict[str, Any] = {"hardware": None, "hardware_folders": ["/x/hardware"]}
    for config, begins in (
        (
            named,
            "hardware=acme is a spec sheet of the user's own: add it as DIR/hardware/acme.yaml; with hardware=acme left out",
        ),
        (
            unnamed,
            "spec sheets of the user's own were looked at first: add them to DIR/hardware; without them fractions of spec",
        ),
    ):
        (text,) = missing_elsewhere(config)
        assert text.startswith(begins)
        assert "/x" not in text
        assert text.endswith("follow the built-in sheet that the device's name matches, or what is derived of a CPU")
        header, _, settings = experiment_file(config, "a run").partition("defaults")
        assert "hardware" not in settings
        assert header.splitlines()[2] == f"#   {command_of(config)}"
        assert f"# Not in this file: {text}." in header.replace("\n#  ", "")
        assert all(line.startswith("#") for line in header.splitlines())


def test_a_sheet_that_the_file_cannot_carry_is_said_beside_it_and_works_once_it_is_added(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (mine / "hardware").mkdir()
    text = (resources.files("configs") / "hardware" / "nvidia-h200-sxm5-141gb.yaml").read_text()
    (mine / "hardware" / "acme.yaml").write_text(text.replace("nvidia-h200-sxm5-141gb", "acme"))
    assert cli.main(["run", "--cfg", "experiment", "--config-dir", str(mine), "backend=cpu", "hardware=acme"]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("roofbench: not in this file: hardware=acme is a spec sheet of the user's own: add it as DIR/")
    assert said.err.count("\n") == 1
    assert ", but for what is named below. Saved as " in said.out
    elsewhere = save(tmp_path / "elsewhere", said.out)
    shutil.copytree(mine / "hardware", elsewhere / "hardware")
    info = run_info(argv=("roofbench", "run", "--config-dir", str(mine)), config={"hardware": "acme"})
    line = rerun_command(info, Scrubber()).line
    assert line == "roofbench run --config-dir DIR experiment=again hardware=acme"
    assert f"#   {line}\n" in said.out
    before, after = compose(["backend=cpu", "hardware=acme"], mine), compose(line.split()[4:], elsewhere)
    assert {**asdict(before), **dict.fromkeys(LEFT_OUT)} == {**asdict(after), **dict.fromkeys(LEFT_OUT)}
    assert (before.hardware, after.hardware) == ("acme", "acme")


def test_a_file_that_lacks_nothing_says_so_and_nothing_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--cfg", "experiment", "backend=cpu", "hardware=mi300x"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "# Every setting that a run measures with, so that no other file is needed. Saved as " in said.out
    assert "Not in this file" not in said.out


@pytest.mark.parametrize(
    ("fields", "own"),
    [
        ({"argv": ("roofbench", "run", "-cd", "x")}, True),
        ({"argv": ("roofbench", "run", "--config-dir=x")}, True),
        ({"overrides": ("hydra.searchpath=[file:///x]",)}, True),
        ({"argv": ("roofbench", "run", "note=--config-dir")}, False),
    ],
)
def test_what_was_composed_from_ones_own_folder_is_known_by_its_command(fields: dict[str, Any], own: bool) -> None:
    assert own_folder(run_info(**fields)) is own


def test_a_name_in_the_header_cannot_end_it() -> None:
    text = experiment_file({}, "run x\n!!python/object: y\x07\u2028z")
    assert text.splitlines()[1].startswith("# Every setting that run x!!python/object: yz measures with, ")


@pytest.mark.parametrize("flag", ["--resolve", "--package=measure"])
def test_parts_of_the_file_are_not_to_be_had(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--cfg", "experiment", flag, *FAKE]) == 2
    assert "--package and --resolve go with --cfg; write roofbench run --cfg job --resolve" in capsys.readouterr().err
