"""A spec sheet of the user's own judges a run like one of the table."""

import json
import shutil
from importlib import resources
from pathlib import Path

from suite.hardware.catalogue import load
from tests.cli.command import CONFIGS, roofbench

OWN = "acme-board"


def own_sheet(folder: Path) -> Path:
    """A copy of a real sheet under another id, in a folder that also has the fake backend's files."""
    configs = folder / "configs"
    shutil.copytree(CONFIGS, configs)
    text = (resources.files("configs") / "hardware" / "nvidia-h200-sxm5-141gb.yaml").read_text()
    (configs / "hardware").mkdir()
    (configs / "hardware" / f"{OWN}.yaml").write_text(text.replace("nvidia-h200-sxm5-141gb", OWN))
    return configs


def test_plan_run_and_report_use_it(tmp_path: Path) -> None:
    folder = own_sheet(tmp_path)
    line = ("--config-dir", str(folder), "backend=fake", "experiment=tiny", f"hardware={OWN}")
    planned = roofbench(tmp_path, "plan", *line)
    assert planned.status == 0, planned.err
    ran = roofbench(tmp_path, "run", *line)
    assert ran.status == 0, ran.err
    rows = json.loads(roofbench(tmp_path, "show", "--json").out)
    assert {row["hardware"] for row in rows} == {OWN}
    bf16 = [row for row in rows if row["format"] == "bf16"]
    peak = load("nvidia-h200-sxm5-141gb").peak_flop_s("bf16")
    assert peak is not None
    assert any(row["fractions"]["spec"] is not None and row["fractions"]["spec"] > 0 for row in bf16)
    reported = roofbench(tmp_path, "report", "latest", "-o", "report.md")
    assert reported.status == 0, reported.err
    assert "named by the user" in (tmp_path / "report.md").read_text()


def test_a_sheet_that_is_not_there_is_named_before_anything_is_created(tmp_path: Path) -> None:
    folder = own_sheet(tmp_path)
    said = roofbench(tmp_path, "run", "--config-dir", str(folder), "backend=fake", "experiment=tiny", "hardware=acme-bored")
    assert said.status == 2
    assert "acme-bored" in said.err
    assert not (tmp_path / "roofbench.db").exists()
