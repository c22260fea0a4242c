"""What the kernels compute, by Triton's interpreter, against float64; and that planted bugs show."""

import pytest
import torch

from tests.backends.triton import apart
from tests.backends.triton.asked import names_asked, parameters
from tests.backends.triton.decode import interpreted
from tests.backends.triton.decode.interpreted import BROKEN, IN_ANY_ORDER, SOUND

Found = dict[str, dict[str, float]]

LIMIT = 1e-3  # fp16 keeps 11 bits of a weight, of a query and of the output; of an 8-bit cache the numbers are exact
FP32_LIMIT = 1e-6
LSE_LIMIT = 2e-5
ROUNDED_LSE_LIMIT = 1e-3  # of queries in fp32, which the kernels round to fp16


THOROUGH = {
    "pages of 2",
    "pages of 16",
    "pages of 64",
    "heads of keys of their own",
    "5 new tokens",
    "8 new tokens",
    "given scale",
    "staged fp8_e4m3, scales of the token",
    "staged int8, scales of the tensor",
    "registers int8, pages of 2, tokens before heads",
    "registers int8, pages of 8",
    "registers int8, a prefix that all share",
    "registers int8, large values",
    # The check that catches them does not know which kernel it was.
    "registers: stale page",
    "registers: swapped heads",
    "registers: dropped split",
    # Both kernels have their splits merged by the same function.
    "registers, in any order",
}


def is_thorough(name: str) -> bool:
    """In registers the two formats differ in how numbers are converted, and in nothing else."""
    return name in THOROUGH or (name.startswith("registers fp8_e4m3, ") and not name.endswith(" scales"))


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest) -> Found:
    distances: Found = apart.interpreted(interpreted.__name__, names_asked(request))
    return distances


@pytest.mark.parametrize("spec", parameters(SOUND, is_thorough))
def test_it_decodes(found: Found, spec: interpreted.Spec) -> None:
    distances = found[spec.name]
    assert distances["o"] <= (FP32_LIMIT if spec.problem.format == "fp32" else LIMIT)
    assert distances["lse"] <= (ROUNDED_LSE_LIMIT if spec.q_dtype is torch.float32 else LSE_LIMIT)


def test_a_launch_leaves_the_counts_as_it_found_them(found: Found) -> None:
    assert all(found[spec.name]["left"] == 0 for spec in SOUND if spec.name in found)


def test_one_split_and_several_and_many_are_among_the_specs(found: Found) -> None:
    splits = {found[spec.name]["splits"] for spec in SOUND if spec.name in found}
    assert {1, 2, 3, 6} <= splits


@pytest.mark.parametrize("spec", parameters(IN_ANY_ORDER, THOROUGH.__contains__))
def test_whoever_arrives_last_the_bits_are_the_same(found: Found, spec: interpreted.Spec) -> None:
    assert found[spec.name]["splits"] > 2
    assert found[spec.name]["differing"] == 0


@pytest.mark.parametrize("spec", parameters(BROKEN, THOROUGH.__contains__))
def test_planted_bugs_are_caught(found: Found, spec: interpreted.Spec) -> None:
    assert not found[spec.name]["o"] <= 20 * LIMIT  # written so that NaN is caught
