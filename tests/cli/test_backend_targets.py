"""A target that leads nowhere is refused by a plan as by a run, and no framework is loaded to find that out."""

from pathlib import Path

import pytest

from suite import cli
from tests.cli.command import roofbench

NO_CLASS = "{0}; a target is MODULE:CLASS, such as backends.cpu:CpuBackend"
NOWHERE = [
    ("os:nope", NO_CLASS.format("module os has no class nope")),
    ("os:Nope.inner", NO_CLASS.format("module os has no class Nope.inner")),
    ("tests.fake.backend:Nope", NO_CLASS.format("module tests.fake.backend has no class Nope")),
    ("nowhere:Backend", "no device for backend 'cpu': its module nowhere is not installed; "),
    ("tests.nowhere:Backend", "no device for backend 'cpu': its module tests.nowhere is not installed; "),
]


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize(("target", "message"), NOWHERE, ids=[target for target, _ in NOWHERE])
def test_a_target_that_leads_nowhere_is_refused(command: str, target: str, message: str, tmp_path: Path) -> None:
    said = roofbench(tmp_path, command, "backend=cpu", f"backends.cpu.target={target}")
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"roofbench: {message}")
    assert said.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_what_is_planned_for_a_sheet_may_be_measured_by_what_is_not_here(capsys: pytest.CaptureFixture[str]) -> None:
    target = "backends.cuda.target=nowhere:Backend"
    assert cli.main(["plan", "backend=cuda", target, "hardware=nvidia-h200-sxm5-141gb"]) == 0
    assert "this can be planned, not run: backend 'cuda' is its module nowhere is not installed" in capsys.readouterr().out
