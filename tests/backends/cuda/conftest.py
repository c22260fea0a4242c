"""One backend on the first device; run with ``pytest -m "gpu and not thorough" tests/backends``."""

from collections.abc import Iterator

import pytest
import torch

from backends.cuda import CudaBackend


@pytest.fixture(scope="module")
def backend() -> CudaBackend:
    made = CudaBackend()
    made.select(0)
    return made


@pytest.fixture(autouse=True)
def _memory_is_given_back() -> Iterator[None]:
    yield
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
