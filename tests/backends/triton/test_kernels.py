"""The kernels computing in Triton's interpreter: every layout at sizes that no tile divides, and bugs that must be caught.

bf16 is not among the formats: the interpreter computes its products wrong.
"""

from importlib.metadata import version
from typing import Any

import pytest

from tests.backends.triton import apart
from tests.backends.triton.interpreted import BROKEN, SOUND, Spec


def numbers(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version(name).split(".")[:2])


pytestmark = pytest.mark.skipif(
    numbers("triton") < (3, 7) and numbers("numpy") >= (2, 4),
    reason="the interpreter of Triton before 3.7 needs NumPy before 2.4",
)


@pytest.fixture(scope="module")
def verdicts() -> dict[str, dict[str, Any]]:
    """One process for all: whether Triton interprets is decided when it is imported."""
    found: dict[str, dict[str, Any]] = apart.interpreted("tests.backends.triton.interpreted")
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


def test_both_kernels_were_tried(verdicts: dict[str, dict[str, Any]]) -> None:
    loads = {name: verdict["loads"] for name, verdict in verdicts.items()}
    assert loads["fp16 nt"] == "tensor descriptors"
    assert loads["fp16 nt, pointers"] == "pointers: sm_80 has no tensor descriptors"
    assert loads["int8 odd"] == "pointers: rows of A have 77 bytes, no multiple of 16"
