"""Help and plans answer at once and load no framework: five runs each, the median counts.

What is timed is the processor's time in the child, which is what the code can answer for, at the pace of a stated machine.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from suite import cli
from tests.cli.command import roofbench
from tests.pace import at_reference_pace_s, child_s

LIMIT_S = 1.0
# 3331 cases for each of three kinds of data.
TEN_THOUSAND = (
    "plan", "hardware=nvidia-h200-sxm5-141gb", "experiment=thorough", "jobs.gemm.distributions=[normal,zeros,integer]",
)  # fmt: skip
HEAVY = ("torch", "jax", "triton", "streamlit", "plotly", "sqlalchemy", "rich", "pandas", "alembic")

SPY = """
import sys
from suite.cli import main
try:
    main(sys.argv[1:])
finally:
    print("loaded:", *sorted(name for name in sys.modules if "." not in name), file=sys.stderr)
"""


def taken_s(folder: Path, *arguments: str) -> float:
    return at_reference_pace_s(lambda: child_s([sys.executable, "-m", "suite.cli", *arguments], cwd=folder))


def loaded(*arguments: str) -> set[str]:
    child = subprocess.run([sys.executable, "-c", SPY, *arguments], capture_output=True, text=True, check=True)
    return set(child.stderr.rpartition("loaded:")[2].split())


@pytest.mark.paced
def test_help_answers_within_a_second(tmp_path: Path) -> None:
    assert taken_s(tmp_path, "--help") < LIMIT_S


@pytest.mark.paced
def test_a_plan_of_ten_thousand_cases_answers_within_a_second(tmp_path: Path) -> None:
    assert roofbench(tmp_path, *TEN_THOUSAND).out.count("gemm ") > 9_900
    assert taken_s(tmp_path, *TEN_THOUSAND) < LIMIT_S


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help"), ("--version",), TEN_THOUSAND])
def test_neither_loads_a_framework_or_a_database(arguments: tuple[str, ...]) -> None:
    modules = loaded(*arguments)
    assert modules
    assert modules.isdisjoint(HEAVY)


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help"), ("store", "merge", "--help"), ("--version",)])
def test_help_loads_not_even_hydra_or_numpy(arguments: tuple[str, ...]) -> None:
    assert loaded(*arguments).isdisjoint({"hydra", "omegaconf", "numpy", "yaml"})


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_each_command_teaches_with_examples(command: str, tmp_path: Path) -> None:
    said = roofbench(tmp_path, command, "--help")
    examples = said.out.partition("examples:\n")[2].splitlines()
    assert said.status == 0
    assert len([line for line in examples if line.startswith("  roofbench ")]) >= 3
    assert max(map(len, said.out.splitlines())) <= 132


def test_the_top_help_says_where_results_are_and_what_statuses_mean(tmp_path: Path) -> None:
    said = roofbench(tmp_path)
    assert said.status == 0
    for text in ("./roofbench.db", "exit status:", "--store PATH", *cli.COMMANDS):
        assert text in said.out
