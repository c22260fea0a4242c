"""What was never measured is said to be so, where users look first."""

from pathlib import Path

import pytest

ROWS = [line for line in (Path(__file__).parents[2] / "README.md").read_text().splitlines() if line.startswith("|")]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("| AMD (ROCm) |", "no AMD device has been measured yet"),
        ("| AMD (ROCm) |", "simulated HIP device, whose results say `simulated`"),
        ("| XLA (JAX) |", "on TPUs its programs were compiled"),
        ("| XLA (JAX) |", "none was measured"),
    ],
)
def test_it_is_said(row: str, said: str) -> None:
    (found,) = [line for line in ROWS if line.startswith(row)]
    assert said in found
