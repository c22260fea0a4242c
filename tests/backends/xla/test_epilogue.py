"""What follows a product is nothing that is computed here, and would be left out unseen: reference and result would agree."""

import pytest

from backends.xla import XlaBackend
from tests.backends.epilogue_cases import FOLLOWED, finished_case


@pytest.mark.parametrize("epilogue", FOLLOWED)
def test_it_is_refused_by_name(epilogue: str) -> None:
    backend = XlaBackend({"platform": "cpu"})
    backend.select(0)
    assert backend.supports(finished_case("fp32", "none", 32, 32, 32, backend="xla")) is None
    told = backend.supports(finished_case("fp32", epilogue, 32, 32, 32, backend="xla"))
    assert told == f"gemm through XLA has no epilogue {epilogue}; take none, or a backend of torch"
