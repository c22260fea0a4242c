"""What the streaming kernel computes, by Triton's interpreter, against float64; and that planted bugs show."""

import pytest

from tests.backends.triton import apart
from tests.backends.triton.streaming import interpreted
from tests.backends.triton.streaming.interpreted import BROKEN, SOUND

Found = dict[str, dict[str, float]]
LIMIT = 6e-4  # fp16 keeps 11 bits of the normed X and of the result
FP32_LIMIT = 1e-6


@pytest.fixture(scope="module")
def found() -> Found:
    distances: Found = apart.interpreted(interpreted.__name__)
    return distances


@pytest.mark.parametrize("spec", SOUND, ids=lambda spec: spec.name)
def test_it_is_the_product_with_what_is_around_it(found: Found, spec: interpreted.Spec) -> None:
    assert found[spec.name]["distance"] <= (FP32_LIMIT if spec.problem.format == "fp32" else LIMIT)


def test_a_launch_leaves_the_counts_as_it_found_them(found: Found) -> None:
    assert all(found[spec.name]["left"] == 0 for spec in SOUND)


def test_rows_of_the_embedding_are_those_asked_for(found: Found) -> None:
    assert found["gathered"]["distance"] == 0.0


@pytest.mark.parametrize("spec", BROKEN, ids=lambda spec: spec.name)
def test_planted_bugs_are_caught(found: Found, spec: interpreted.Spec) -> None:
    assert not found[spec.name]["distance"] <= 20 * LIMIT  # written so that NaN is caught
