"""What the kernels compute, by Triton's interpreter, against float64; and that planted bugs show."""

import pytest

from tests.backends.triton import apart
from tests.backends.triton.asked import names_asked, parameters
from tests.backends.triton.attention import interpreted
from tests.backends.triton.attention.interpreted import BROKEN, SOUND

Found = dict[str, dict[str, float]]

# fp16 keeps 11 bits of a weight and of the output; e4m3 keeps four of a weight.
LIMITS = {"fp16": 1e-3, "fp8_e4m3": 8e-2}
LSE_LIMIT = 1e-5


def is_thorough(name: str) -> bool:
    """Of each problem one way of loading is interpreted by default, and the other where it differs most."""
    return name.endswith(", pointers") and name not in ("causal, fewer queries, pointers", "fp8, V transposed, pointers")


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest) -> Found:
    distances: Found = apart.interpreted(interpreted.__name__, names_asked(request))
    return distances


@pytest.mark.parametrize("spec", parameters(SOUND, is_thorough))
def test_it_computes_attention_and_its_gradients(found: Found, spec: interpreted.Spec) -> None:
    distances = found[spec.name]
    limit = LIMITS[spec.problem.format]
    assert distances.pop("lse") <= LSE_LIMIT
    assert all(each <= limit for each in distances.values()), distances
    assert set(distances) == ({"o", "dq", "dk", "dv"} if spec.has_gradients else {"o"})


@pytest.mark.parametrize("spec", BROKEN, ids=lambda spec: spec.name)
def test_planted_bugs_are_caught(found: Found, spec: interpreted.Spec) -> None:
    assert not found[spec.name]["o"] <= 2 * LIMITS[spec.problem.format]  # written so that NaN is caught
