"""What is kept of a compiled program: its compile time, XLA's count of the work and of the memory, and the flags."""

import json
from types import SimpleNamespace

import pytest

from backends.jax.analyses import cost_analysis, memory_analysis
from backends.xla import XlaBackend
from suite.jobs.gemm import GemmJob
from tests.backends.cases import calibration_case, gemm_case

M, N, K = 64, 96, 128


@pytest.fixture(scope="module")
def backend() -> XlaBackend:
    made = XlaBackend({"platform": "cpu"})
    made.select(0)
    return made


def test_a_product_s_work_and_memory_are_what_the_job_counts(backend: XlaBackend) -> None:
    case = gemm_case("fp32", M, N, K, backend="xla")
    described = json.loads(json.dumps(dict(backend.prepare(case, 2, seed=3).describe())))
    work, sizes = GemmJob().work(case.workload), described["memory_analysis"]
    assert described["compile_s"] > 0
    assert described["cost_analysis"]["flops"] == pytest.approx(work.flops, rel=0.01)
    assert described["cost_analysis"]["bytes_accessed"] >= work.compulsory_bytes
    # A launch is given the output's memory, and its result is that.
    assert sizes["output_bytes"] == sizes["aliased_bytes"] == 4 * M * N
    assert sizes["argument_bytes"] == work.compulsory_bytes
    assert set(sizes) == {"argument_bytes", "output_bytes", "aliased_bytes", "temporary_bytes", "code_bytes"}


def test_a_stream_has_them_too(backend: XlaBackend) -> None:
    described = backend.prepare(calibration_case("triad", 3 << 20, backend="xla"), 1, seed=3).describe()
    assert described["memory_analysis"]["output_bytes"] == pytest.approx(1 << 20, rel=0.05)
    assert described["compile_s"] > 0


def test_what_xla_does_not_know_is_left_out() -> None:
    """It writes -1, and some platforms tell nothing."""
    unknown = SimpleNamespace(
        cost_analysis=lambda: {"flops": 8.0, "bytes accessed": -1.0, "optimal_seconds": -1.0},
        memory_analysis=lambda: SimpleNamespace(temp_size_in_bytes=-1, output_size_in_bytes=0),
    )
    assert cost_analysis(unknown) == {"flops": 8.0}
    assert memory_analysis(unknown) == {"output_bytes": 0}
    silent = SimpleNamespace(cost_analysis=lambda: None, memory_analysis=lambda: None)
    assert (cost_analysis(silent), memory_analysis(silent)) == ({}, {})
