"""What the tests that need a CUDA device share."""

from statistics import median
from typing import Any

import pytest
import torch

from backends.cuda import CudaBackend
from backends.torch.cuda_graph import GraphSampler
from backends.torch.kernel import TorchKernel
from suite.case import Case, Regime
from suite.jobs.registry import JOBS
from suite.measure.regimes import rotating_sets
from tests.backends.cases import gemm_case

NEEDS_DEVICE = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]
COLD = Regime("cold", "sustained", "device")
WARM = Regime("warm", "sustained", "device")
CALL = Regime("warm", "sustained", "call")
SAMPLE_S = 0.002


def on_cuda(format_name: str, m: int, n: int, k: int, **options: Any) -> Case:
    return gemm_case(format_name, m, n, k, backend="cuda", **options)


def prepared(backend: CudaBackend, case: Case, sets: int, seed: int = 3) -> TorchKernel:
    reason = backend.supports(case)
    if reason is not None:
        pytest.skip(reason)
    kernel = backend.prepare(case, sets, seed)
    assert isinstance(kernel, TorchKernel)
    return kernel


def per_launch_ns(sampler: Any, count: int = 15) -> float:
    sampler.sample(3)
    middle_ns: float = median(sampler.sample(count))
    return middle_ns / int(sampler.launches)


def cold_sets(backend: CudaBackend, case: Case) -> int:
    """Enough input sets to be cold by rotation."""
    footprint = JOBS[case.workload.job].footprint(case.workload)
    return rotating_sets(case.regime, footprint, backend.devices()[0].llc_bytes, "rotation")


def graph_of(backend: CudaBackend, kernel: Any, case: Case) -> GraphSampler:
    sampler = backend.sampler(kernel, case, SAMPLE_S)
    assert isinstance(sampler, GraphSampler), dict(sampler.details)
    return sampler
