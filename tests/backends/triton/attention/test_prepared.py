"""Cases of the job by the port, launched by Triton's interpreter: made ready, checked, and found incorrect where planted."""

from typing import Any

import pytest

from tests.backends.triton import apart
from tests.backends.triton.asked import names_asked, parameters
from tests.backends.triton.attention import prepared
from tests.backends.triton.attention.prepared import BROKEN, SOUND, Spec

Found = dict[str, dict[str, Any]]
DESCRIBED = ("causal", "causal, pointers", "gradients", "fp8, scales of heads")
SPECS = parameters(SOUND, {spec.name for spec in SOUND if spec.thorough}.__contains__)


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest) -> Found:
    verdicts: Found = apart.interpreted(prepared.__name__, names_asked(request, DESCRIBED))
    return verdicts


@pytest.mark.parametrize("spec", SPECS)
def test_it_passes_the_check_of_the_job(found: Found, spec: Spec) -> None:
    assert found[spec.name]["passed"], found[spec.name]["reason"]


@pytest.mark.parametrize("spec", BROKEN, ids=lambda spec: spec.name)
def test_planted_bugs_fail_it(found: Found, spec: Spec) -> None:
    assert not found[spec.name]["passed"]


def test_it_says_how_it_was_cut_and_what_it_was_given(found: Found) -> None:
    forward, backward, fp8 = (found[name]["described"] for name in ("causal", "gradients", "fp8, scales of heads"))
    assert forward["tiles"]
    assert forward["loads"] == "tensor descriptors"
    assert set(backward["parts"]) == {"forward", "keys_and_values", "queries"}
    assert fp8["output_dtype"] == "bfloat16"
    assert found["causal, pointers"]["described"]["loads"].startswith("pointers")
