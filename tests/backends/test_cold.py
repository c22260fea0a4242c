"""How large a flush may be told to be."""

import pytest

from backends.cold import LEAST_FLUSH_FACTOR, flush_factor
from backends.cpu import CpuBackend
from backends.cuda import CudaBackend
from suite.errors import UsageError


@pytest.mark.parametrize("backend", [CpuBackend, CudaBackend])
def test_a_flush_under_two_caches_would_call_warm_cold(backend: type[CpuBackend] | type[CudaBackend]) -> None:
    with pytest.raises(UsageError) as refused:
        backend({"flush_factor": 1.99})
    message = str(refused.value)
    assert f"backends.{backend.name}.options.flush_factor=1.99" in message
    assert "at least 2" in message


def test_two_caches_and_more_are_taken_as_given() -> None:
    assert (flush_factor("cpu", LEAST_FLUSH_FACTOR), flush_factor("cpu", 4.0)) == (2.0, 4.0)
