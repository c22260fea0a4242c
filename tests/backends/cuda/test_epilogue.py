"""Products that something follows, on the device: by the library, and by torch's compiler."""

import json
import logging

import pytest
import torch

from backends.cuda import CudaBackend
from backends.torch.gemm.compiled import CompiledKernel
from suite.case import Case
from tests.backends.cases import fresh_verdict, run_all
from tests.backends.cuda.helpers import NEEDS_DEVICE, cold_sets, graph_of, prepared
from tests.backends.epilogue_cases import (
    ACTIVATIONS,
    FOLLOWED,
    OFFERED,
    WITH_ACTIVATION,
    WITH_BIAS,
    as_it_is,
    finished_case,
    gelu_by_erf,
    other,
)
from tests.backends.grid import diagonal, grid

pytestmark = NEEDS_DEVICE
SHAPES = [(1, 64, 64), (17, 33, 65), (300, 1, 33), (256, 1024, 4096)]


@pytest.fixture(autouse=True)
def _what_the_compiler_passes_over_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """It logs a traceback for each configuration that does not fit, dozens for a product."""
    caplog.set_level(logging.CRITICAL, logger="torch._inductor.select_algorithm")


def on_cuda(format_name: str, epilogue: str, *shape: int, implementation: str = "library", **options: str) -> Case:
    m, n, k = shape
    return finished_case(format_name, epilogue, m, n, k, implementation, backend="cuda", **options)


@grid("format_name, epilogue, shape", OFFERED, FOLLOWED, SHAPES, few=diagonal(2, OFFERED, FOLLOWED, SHAPES))
def test_the_library_is_right(backend: CudaBackend, format_name: str, epilogue: str, shape: tuple[int, int, int]) -> None:
    case = on_cuda(format_name, epilogue, *shape)
    result = fresh_verdict(prepared(backend, case, 2), case, seed=4)
    assert result.passed, result.reason


@grid(
    "implementation, layout",
    ["library", "compiled"],
    ["nn", "tn"],
    few=lambda name, _: name == "library",
)
def test_other_layouts(backend: CudaBackend, implementation: str, layout: str) -> None:
    case = on_cuda("bf16", "bias_gelu_tanh", 128, 256, 512, implementation=implementation, layout=layout)
    assert fresh_verdict(prepared(backend, case, 1), case, seed=4).passed


@pytest.mark.parametrize(
    ("epilogue", "kernels"),
    [("bias", 1), ("bias_relu", 1), ("bias_gelu_tanh", 1), ("silu", 2)],
)
def test_what_is_said_to_be_fused_is_one_kernel(backend: CudaBackend, epilogue: str, kernels: int) -> None:
    """At a size whose K is not split."""
    case = on_cuda("bf16", epilogue, 4096, 4096, 1024)
    kernel = prepared(backend, case, 1)
    run_all(kernel)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True) as profile:
        kernel.enqueue(0)
        torch.cuda.synchronize()
    on_device = [each.name for each in profile.events() if each.device_type == torch.autograd.DeviceType.CUDA]
    launched = [name for name in on_device if "Memset" not in name and "Memcpy" not in name]
    assert len(launched) == kernels, launched
    assert kernel.describe()["epilogue"] == ("fused" if kernels == 1 else "separate launches")


def test_the_fused_gelu_is_that_by_tanh(backend: CudaBackend) -> None:
    case = on_cuda("fp32", "bias_gelu_tanh", 512, 512, 256)
    kernel = prepared(backend, case, 1)
    assert kernel.describe()["epilogue"] == "fused"
    assert fresh_verdict(kernel, case, seed=4).passed
    assert not fresh_verdict(other(as_it_is, gelu_by_erf)(kernel), case, seed=4).passed


@grid(
    "epilogue, implementation",
    WITH_BIAS,
    ["library", "compiled"],
    few=lambda _, name: name == "library",
)
def test_a_wrong_bias_is_caught(backend: CudaBackend, epilogue: str, implementation: str) -> None:
    case = on_cuda("bf16", epilogue, 256, 512, 4096, implementation=implementation)
    right = ACTIVATIONS[epilogue.partition("_")[2]]
    kernel = prepared(backend, case, 1)
    for bias in (torch.zeros_like, lambda each: each.roll(1)):
        assert not fresh_verdict(other(bias, right)(kernel), case, seed=10).passed


@pytest.mark.parametrize("epilogue", WITH_ACTIVATION)
def test_an_activation_left_out_is_caught(backend: CudaBackend, epilogue: str) -> None:
    case = on_cuda("bf16", epilogue, 256, 512, 4096)
    assert not fresh_verdict(other(as_it_is, as_it_is)(prepared(backend, case, 1)), case, seed=10).passed


def says_what_was_compiled(kernel: CompiledKernel, *, followed: bool) -> None:
    described = kernel.describe()
    assert json.loads(json.dumps(described)) == described
    assert described["call"] == "torch.compile, mode max-autotune-no-cudagraphs"
    assert described["compiled_calls"]
    assert described["tuning_s"] > 0
    if followed:
        assert described["epilogue"] in ("fused", "separate launches")
        assert ("passing_bytes" in described) is (described["epilogue"] == "separate launches")


@grid(
    "format_name, epilogue",
    OFFERED,
    ["none", *FOLLOWED],
    few=lambda *given: given in (("fp32", "none"), ("bf16", "bias_gelu_tanh")),
)
def test_compiled_products_are_described_are_right_in_graphs_and_grow_no_memory(
    backend: CudaBackend, format_name: str, epilogue: str
) -> None:
    case = on_cuda(format_name, epilogue, 1024, 512, 2048, implementation="compiled")
    kernel = prepared(backend, case, cold_sets(backend, case))
    assert isinstance(kernel, CompiledKernel)
    says_what_was_compiled(kernel, followed=epilogue != "none")
    assert fresh_verdict(kernel, case, seed=4).passed
    sampler = graph_of(backend, kernel, case)
    sampler.sample(3)
    for _ in range(2):  # a set's next result is made before its last is given back
        run_all(kernel)
    torch.cuda.synchronize()
    reserved = torch.cuda.memory_reserved()
    with torch.compiler.set_stance("fail_on_recompile"):
        for _ in range(5):
            run_all(kernel)
    sampler.sample(5)
    torch.cuda.synchronize()
    assert torch.cuda.memory_reserved() == reserved
    assert fresh_verdict(kernel, case, 7, sampler.replay).passed
