"""Cases of the job by roofbench's own kernels, launched by Triton's interpreter: checked, and found incorrect where planted."""

from typing import Any

import pytest

from tests.backends.triton import apart
from tests.backends.triton.streaming import prepared
from tests.backends.triton.streaming.prepared import INTERPRETED, SOUND, Spec

Found = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def found() -> Found:
    verdicts: Found = apart.interpreted(prepared.__name__)
    return verdicts


@pytest.mark.parametrize("spec", SOUND, ids=lambda spec: spec.name)
def test_it_passes_the_check_of_the_job(found: Found, spec: Spec) -> None:
    assert found[spec.name]["passed"], found[spec.name]["reason"]


@pytest.mark.parametrize("name", INTERPRETED)
def test_planted_bugs_fail_it(found: Found, name: str) -> None:
    assert found["planted bugs"][name]


def test_a_step_is_five_launches_a_layer_and_says_how_each_is_cut(found: Found) -> None:
    described = found["two sequences"]["described"]
    assert described["launches"] == 2 * 5 + 2
    assert set(described["products"]) == {"qkv", "o", "gate_up", "down", "lm_head"}
    assert all("multiplier" in each["configuration"] for each in described["products"].values())
    assert described["attention"]["splits"]
    assert described["order"] == "one launch after the other"
    assert all(
        "registers" in each["configuration"] and "fp32 multiply-adds" in each["multiplied_by"]
        for each in found["one sequence"]["described"]["products"].values()
    )
