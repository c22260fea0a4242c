"""The kernels of quantised operands in Triton's interpreter: sizes that no tile divides, and bugs that must be caught."""

from typing import Any

import pytest

from tests.backends.triton import apart
from tests.backends.triton.asked import names_asked, parameters
from tests.backends.triton.interpreted_rungs import BROKEN, SOUND, Spec
from tests.backends.triton.test_kernels import pytestmark as needs_an_interpreter

pytestmark = needs_an_interpreter


def is_thorough(name: str) -> bool:
    """Splits of K and two blocks are the same loop whatever a weight is stored as; how it is read is interpreted in each."""
    split = name.endswith((", two blocks", ", split 1", ", split 2", ", split 3")) and not name.startswith("w4a16, ")
    return split or name in ("w4a16 zero_point=True, one row", "w8a16, one row", "mxfp4a16, outliers")


@pytest.fixture(scope="module")
def verdicts(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """One process for all: whether Triton interprets is decided when it is imported."""
    found: dict[str, dict[str, Any]] = apart.interpreted("tests.backends.triton.interpreted_rungs", names_asked(request))
    return found


@pytest.mark.parametrize("spec", parameters(SOUND, is_thorough))
def test_matches_the_reference(verdicts: dict[str, dict[str, Any]], spec: Spec) -> None:
    found = verdicts[spec.name]
    assert found["passed"], found["reason"]


@pytest.mark.parametrize("spec", BROKEN, ids=lambda spec: spec.name)
def test_a_planted_bug_is_caught(verdicts: dict[str, dict[str, Any]], spec: Spec) -> None:
    found = verdicts[spec.name]
    assert not found["passed"]
    assert found["reason"]
