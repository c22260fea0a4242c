"""The kernels of quantised operands in Triton's interpreter: sizes that no tile divides, and bugs that must be caught."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.backends.triton.interpreted_rungs import BROKEN, SOUND, Spec
from tests.backends.triton.test_kernels import pytestmark as needs_an_interpreter

pytestmark = needs_an_interpreter


@pytest.fixture(scope="module")
def verdicts() -> dict[str, dict[str, Any]]:
    """One process for all: whether Triton interprets is decided when it is imported."""
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # matrices this small wait for their threads
    environment = {**os.environ, **one_thread, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-m", "tests.backends.triton.interpreted_rungs"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("spec", SOUND, ids=lambda spec: spec.name)
def test_matches_the_reference(verdicts: dict[str, dict[str, Any]], spec: Spec) -> None:
    found = verdicts[spec.name]
    assert found["passed"], found["reason"]


@pytest.mark.parametrize("spec", BROKEN, ids=lambda spec: spec.name)
def test_a_planted_bug_is_caught(verdicts: dict[str, dict[str, Any]], spec: Spec) -> None:
    found = verdicts[spec.name]
    assert not found["passed"]
    assert found["reason"]
