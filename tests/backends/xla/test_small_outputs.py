"""Products of a few elements, all of which may be near 0 by chance."""

import numpy as np
import pytest

from backends.xla import XlaBackend
from suite.measure.verify import probe
from tests.backends.cases import fresh_verdict, gemm_case


@pytest.fixture(scope="module")
def backend() -> XlaBackend:
    made = XlaBackend({"platform": "cpu"})
    made.select(0)
    return made


@pytest.mark.parametrize(("format_name", "k"), [("fp32", 33), ("fp32", 1024), ("fp8_e4m3", 16), ("bf16", 33)])
def test_sound_products_of_one_element_never_fail(backend: XlaBackend, format_name: str, k: int) -> None:
    case = gemm_case(format_name, 1, 1, k, backend="xla")
    kernel = backend.prepare(case, 1, seed=3)
    failed = [verdict.reason for seed in range(50) if not (verdict := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []


@pytest.mark.parametrize("layout", ["nt", "nn", "tn"])
@pytest.mark.parametrize("format_name", ["fp32", "fp8_e4m3"])
def test_the_expected_size_is_that_of_terms_which_do_not_cancel(backend: XlaBackend, format_name: str, layout: str) -> None:
    kernel = backend.prepare(gemm_case(format_name, 2, 3, 4096, layout=layout, backend="xla"), 1, seed=3)
    reference = kernel.reference(probe((2, 3), 0, 4, 1))
    # Terms of normal numbers: their product's is 1, and 4096 of them add up to 64.
    assert reference.expected_size == pytest.approx(64.0, rel=0.05)
    assert np.sqrt(np.mean(reference.tiles[0] ** 2)) == pytest.approx(reference.expected_size, rel=0.8)


def test_nothing_is_expected_of_many_elements(backend: XlaBackend) -> None:
    kernel = backend.prepare(gemm_case("fp32", 8, 8, 128, backend="xla"), 1, seed=3)
    assert kernel.reference(probe((8, 8), 0, 4, 1)).expected_size == 0.0


@pytest.mark.parametrize(("format_name", "k", "words"), [("int8", 2**18, "4.228e+09"), ("fp16", 2**19, "1.311e+05")])
def test_constant_data_that_add_up_past_the_output_are_refused(
    backend: XlaBackend, format_name: str, k: int, words: str
) -> None:
    told = backend.supports(gemm_case(format_name, 8, 8, k, distribution="constant", backend="xla")) or ""
    assert f"constant data over k={k} adds up to {words}, above" in told
    assert told.endswith("; take a smaller k")
    assert backend.supports(gemm_case(format_name, 8, 8, k, backend="xla")) is None
    assert backend.supports(gemm_case(format_name, 8, 8, 2**16, distribution="constant", backend="xla")) is None
