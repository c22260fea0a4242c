"""The device as it is described, and errors that it survives or not."""

import json
import subprocess
import sys

import pytest
import torch

from backends.cuda import CudaBackend
from suite.backend import DeviceInfo
from suite.errors import DeviceNotFound
from suite.outcome import Outcome
from tests.backends.cases import fresh_verdict, run_all
from tests.backends.cuda.helpers import NEEDS_DEVICE, on_cuda, prepared

pytestmark = NEEDS_DEVICE


def test_it_is_described(backend: CudaBackend) -> None:
    info = backend.devices()[0]
    assert DeviceInfo.from_json(json.loads(json.dumps(info.to_json()))) == info
    assert info.name == torch.cuda.get_device_name(0)
    assert info.visible_units == torch.cuda.get_device_properties(0).multi_processor_count
    assert info.llc_bytes is not None
    assert info.llc_bytes > 1 << 20
    assert len(info.uid) == 16
    assert str(torch.cuda.get_device_properties(0).uuid) not in json.dumps(info.to_json())
    assert info.cold_by == "rotation"
    assert "nvml" not in info.details, info.details
    assert info.max_clock_hz is not None
    assert 5e8 < info.max_clock_hz < 5e9
    assert info.driver


def test_an_index_beyond_the_last_is_refused(backend: CudaBackend) -> None:
    with pytest.raises(DeviceNotFound, match="no device 99"):
        CudaBackend().select(99)


def test_the_environment_has_libraries_as_loaded(backend: CudaBackend) -> None:
    run_all(prepared(backend, on_cuda("bf16", 64, 64, 64), 1))
    facts = backend.environment()
    assert facts["torch"].value == torch.__version__
    assert facts["cublas"].value is not None, facts["cublas"].reason
    assert facts["cublaslt"].value is not None, facts["cublaslt"].reason
    assert facts["driver"].value is not None
    assert facts["tunable_op"].value is False
    assert all(fact.value is not None or fact.reason for fact in facts.values())


@pytest.mark.alone
def test_free_memory_counts_what_the_allocator_holds(backend: CudaBackend) -> None:
    before = backend.memory_free()
    block = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    during = backend.memory_free()
    del block
    after = backend.memory_free()
    assert before - during == pytest.approx(1 << 30, rel=0.1)
    assert after == pytest.approx(before, rel=0.02)


@pytest.mark.alone
def test_memory_that_runs_out_is_survived(backend: CudaBackend) -> None:
    n = 1 << 15
    sets = backend.memory_free() // (3 * n * n * 8) + 2
    with pytest.raises(torch.OutOfMemoryError) as caught:
        backend.prepare(on_cuda("fp64", n, n, n), sets, 1)
    failure = backend.classify(caught.value)
    assert (failure.outcome, failure.fatal) == (Outcome.OUT_OF_MEMORY, False)
    del caught
    case = on_cuda("bf16", 256, 256, 256)
    assert fresh_verdict(prepared(backend, case, 1), case, seed=2).passed


@pytest.mark.parametrize(
    "fault",
    [
        "x = torch.zeros(1, device='cuda'); x[torch.full((1,), 10**9, device='cuda')].sum()",
        "a = torch.zeros(1, device='cuda'); torch.cuda._sleep(1000); a[torch.tensor([-5], device='cuda')] = 1",
    ],
)
def test_a_lost_context_is_fatal(fault: str) -> None:
    script = f"""
import torch
from backends.cuda import CudaBackend
backend = CudaBackend()
backend.select(0)
for attempt in range(2):
    try:
        {fault}
        backend.synchronize()
        print("no error")
    except RuntimeError as error:
        failure = backend.classify(error)
        print(failure.outcome.value, failure.fatal)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split("\n")[:2] == ["crashed True", "crashed True"], done.stdout + done.stderr[-2000:]
