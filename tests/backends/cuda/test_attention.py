"""Attention on the device: every implementation that it has, forward and backward, right and wrong, eager and in graphs."""

from typing import Any

import pytest

from backends.cuda import CudaBackend
from backends.torch.attention.kernel import AttentionKernel
from suite.case import Case
from suite.jobs.attention import IMPLEMENTATIONS, sizes_of
from tests.backends.attention_bugs import BUGS, Bug
from tests.backends.attention_cases import attention_case, fresh_verdict
from tests.backends.cuda.helpers import NEEDS_DEVICE, SAMPLE_S, WARM, graph_of
from tests.backends.grid import diagonal, grid

pytestmark = NEEDS_DEVICE

MASKS = ("full", "causal", "sliding_window")
HEADS = ("16x64", "16x128", "32/8x128", "8/1x128", "16x192/128", "8x256")
FORMATS = ("bf16", "fp16")
DIRECTIONS = ("forward", "backward")
# Each shape of heads, each mask with two of them, each format with three.
FEW = (
    ("16x64", "full", "fp16"),
    ("16x128", "causal", "bf16"),
    ("32/8x128", "sliding_window", "bf16"),
    ("8/1x128", "full", "bf16"),
    ("16x192/128", "causal", "fp16"),
    ("8x256", "sliding_window", "fp16"),
)


def on_cuda(implementation: str, format_name: str = "bf16", heads: str = "16x128", **options: Any) -> Case:
    given: dict[str, Any] = {"batch": 2, "length": 1024, "window": 300, **options}
    return attention_case(implementation, format_name, heads, backend="cuda", **given)


def prepared(backend: CudaBackend, case: Case, sets: int = 2) -> AttentionKernel:
    reason = backend.supports(case)
    if reason is not None:
        pytest.skip(reason)
    kernel = backend.prepare(case, sets, 3)
    assert isinstance(kernel, AttentionKernel)
    return kernel


@grid(
    "implementation, heads, mask, format_name, direction",
    [name for name in IMPLEMENTATIONS if name != "triton_tuned"],
    HEADS,
    MASKS,
    FORMATS,
    DIRECTIONS,
    few=lambda _, heads, mask, format_name, direction: (heads, mask, format_name) in FEW,
)
def test_every_implementation_is_right_or_says_why_not(
    backend: CudaBackend, implementation: str, heads: str, mask: str, format_name: str, direction: str
) -> None:
    case = on_cuda(implementation, format_name, heads, mask=mask, direction=direction)
    result = fresh_verdict(prepared(backend, case), case, seed=5)
    assert result.passed, result.reason


SEMANTICS = ({"scaling": "tensor"}, {"scaling": "head"}, {"scaling": "head", "hadamard": True})


@grid(
    "implementation, semantics, mask",
    ["naive", "triton"],
    SEMANTICS,
    MASKS,
    few=diagonal(3, ["naive", "triton"], SEMANTICS, MASKS),
)
def test_fp8_is_right(backend: CudaBackend, implementation: str, semantics: dict[str, Any], mask: str) -> None:
    case = on_cuda(implementation, "fp8_e4m3", mask=mask, semantics=semantics)
    result = fresh_verdict(prepared(backend, case), case, seed=5)
    assert result.passed, result.reason


@grid(
    "implementation, length",
    ["triton", "gluon", "library_cudnn", "library_flash"],
    [1, 17, 127, 129, 1000],
    few=lambda _, length: length in (1, 129),
)
def test_ragged_lengths(backend: CudaBackend, implementation: str, length: int) -> None:
    for mask in MASKS:
        case = on_cuda(implementation, length=length, mask=mask)
        result = fresh_verdict(prepared(backend, case), case, seed=5)
        assert result.passed, (mask, result.reason)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_fastest_of_several_configurations_is_right(backend: CudaBackend, direction: str) -> None:
    case = on_cuda("triton_tuned", direction=direction)
    kernel = prepared(backend, case)
    result = fresh_verdict(kernel, case, seed=5)
    assert result.passed, result.reason
    assert kernel.describe()["chosen_by"] == "trial"


@grid(
    "implementation, direction",
    ["library_flash", "library_cudnn", "library_efficient", "naive", "triton", "gluon"],
    DIRECTIONS,
    few=lambda implementation, direction: direction == "forward" or implementation in ("library_flash", "triton"),
)
def test_graphs_give_the_results_of_data_that_came_after_them(
    backend: CudaBackend, implementation: str, direction: str
) -> None:
    """Results in buffers of a library's own are handed over inside the graph, and behind what is timed."""
    case = on_cuda(implementation, direction=direction, regime=WARM)
    kernel = prepared(backend, case)
    sampler = graph_of(backend, kernel, case)
    sampler.sample(3)
    result = fresh_verdict(kernel, case, seed=8, run=sampler.replay)
    assert result.passed, result.reason
    sampler.close()


@pytest.mark.alone
@pytest.mark.parametrize("implementation", ["library_flash", "library_cudnn"])
def test_handing_over_is_not_in_the_time(backend: CudaBackend, implementation: str) -> None:
    """A graph of many launches hands over once: the time of one launch is that of events around single ones."""
    case = on_cuda(implementation, batch=4, length=4096, regime=WARM)
    kernel = prepared(backend, case, 1)
    in_graph, alone = graph_of(backend, kernel, case), backend._spin(kernel, 1, None, "for comparison")
    graph_ns = min(in_graph.sample(20)) / in_graph.launches
    alone_ns = min(alone.sample(20))
    assert graph_ns == pytest.approx(alone_ns, rel=0.1)
    in_graph.close()


@grid("bug, implementation", BUGS, ["library_flash", "triton"], few=diagonal(2, BUGS, ["library_flash", "triton"]))
def test_planted_bugs_are_caught_on_the_device(backend: CudaBackend, bug: Bug, implementation: str) -> None:
    case = on_cuda(implementation, heads="4/2x64")
    kernel = bug.wrap(prepared(backend, case, 1), sizes_of(case.workload))
    assert not [fresh_verdict(kernel, case, seed) for seed in (10, 11)][-1].passed


@pytest.mark.parametrize("seeds", [2, pytest.param(10, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("implementation", ["library_flash", "triton"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_sound_kernels_never_fail_on_long_causal_sequences(
    backend: CudaBackend, implementation: str, direction: str, seeds: int
) -> None:
    case = on_cuda(implementation, batch=1, length=8192, heads="4x128", direction=direction)
    kernel = prepared(backend, case, 1)
    failed = [result.reason for seed in range(seeds) if not (result := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []


def test_two_implementations_take_turns(backend: CudaBackend) -> None:
    """As ``measure.interleave`` has it: both stay ready, and neither disturbs the other's results."""
    cases = [on_cuda(name, regime=WARM) for name in ("library_flash", "triton")]
    kernels = [prepared(backend, case, 1) for case in cases]
    samplers = [backend.sampler(kernel, case, SAMPLE_S) for kernel, case in zip(kernels, cases, strict=True)]
    for _ in range(3):
        for sampler in samplers:
            sampler.sample(3)
    for kernel, case, sampler in zip(kernels, cases, samplers, strict=True):
        assert fresh_verdict(kernel, case, seed=9, run=sampler.replay).passed
        sampler.close()
