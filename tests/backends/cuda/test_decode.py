"""Decoding on the device: every implementation that it has, right and wrong, eager and in graphs."""

from typing import Any

import pytest

from backends.cuda import CudaBackend
from backends.torch.decode.kernel import DecodeKernel
from suite.case import Case
from suite.jobs.decode import IMPLEMENTATIONS, sizes_of
from tests.backends.cuda.helpers import NEEDS_DEVICE, SAMPLE_S, WARM, graph_of
from tests.backends.decode_bugs import BUGS, MASK_BUGS, Bug
from tests.backends.decode_cases import STORED, decode_case, fresh_verdict
from tests.backends.grid import diagonal, grid

pytestmark = NEEDS_DEVICE

HEADS = ("32/8x128", "8x64", "16/1x128", "8/2x256", "16/1x576/512")
LONG = 32_768
Stored = tuple[str, str | None]


def on_cuda(implementation: str, format_name: str = "bf16", heads: str = "32/8x128", **options: Any) -> Case:
    return decode_case(implementation, format_name, heads, backend="cuda", **{"batch": 5, "kv_len": 1000, **options})


def prepared(backend: CudaBackend, case: Case, sets: int = 2) -> DecodeKernel:
    reason = backend.supports(case)
    if reason is not None:
        pytest.skip(reason)
    kernel = backend.prepare(case, sets, 3)
    assert isinstance(kernel, DecodeKernel)
    return kernel


@grid(
    "implementation, stored, heads",
    [name for name in IMPLEMENTATIONS if name != "triton_tuned"],
    STORED,
    HEADS,
    few=lambda implementation, stored, heads: implementation == "triton" or diagonal(5, STORED, HEADS)(stored, heads),
)
def test_every_implementation_is_right_or_says_why_not(
    backend: CudaBackend, implementation: str, stored: Stored, heads: str
) -> None:
    format_name, scaling = stored
    case = on_cuda(implementation, format_name, heads, scaling=scaling)
    result = fresh_verdict(prepared(backend, case), case, seed=5)
    assert result.passed, result.reason


PAGES = (1, 2, 16, 64, 128)
RAGGED: tuple[dict[str, Any], ...] = (
    {"lengths": "skewed"},
    {"lengths": "uniform", "q_len": 4},
    {"shared_prefix": 256},
    {"order": "contiguous"},
    {"batch": 1, "kv_len": 20_000},
    {"kv_len": 1},
)


@grid(
    "implementation, more, page_size",
    ["naive", "triton", "flashinfer", "library_flash"],
    RAGGED,
    PAGES,
    few=lambda _, more, page_size: diagonal(5, RAGGED, PAGES)(more, page_size),
)
def test_ragged_lengths_prefixes_and_pages(
    backend: CudaBackend, implementation: str, more: dict[str, Any], page_size: int
) -> None:
    for name, scaling in (("bf16", None), ("int8", "token"), ("fp8_e4m3", "tensor")):
        case = on_cuda(implementation, name, page_size=page_size, scaling=scaling, **more)
        if name != "bf16" and backend.supports(case) is not None:
            continue
        result = fresh_verdict(prepared(backend, case), case, seed=5)
        assert result.passed, (name, result.reason)


@grid("stored", STORED, few=lambda stored: stored in (("bf16", None), ("fp32", None), ("fp8_e4m3", "token")))
def test_the_fastest_of_several_configurations_is_right(backend: CudaBackend, stored: Stored) -> None:
    format_name, scaling = stored
    case = on_cuda("triton_tuned", format_name, scaling=scaling, lengths="skewed")
    kernel = prepared(backend, case)
    result = fresh_verdict(kernel, case, seed=5)
    assert result.passed, result.reason
    assert kernel.describe()["chosen_by"] == "trial"


@pytest.mark.parametrize("implementation", ["naive", "library_flash", "library_cudnn", "flashinfer", "triton"])
def test_graphs_go_through_the_table_and_the_data_that_came_after_them(backend: CudaBackend, implementation: str) -> None:
    """Pages are drawn anew with the data: what a graph keeps of the old table would show."""
    case = on_cuda(implementation, regime=WARM)
    kernel = prepared(backend, case)
    sampler = graph_of(backend, kernel, case)
    sampler.sample(3)
    for seed in (8, 9):
        result = fresh_verdict(kernel, case, seed=seed, run=sampler.replay)
        assert result.passed, result.reason
    sampler.close()


@grid(
    "bug, implementation, stored",
    BUGS,
    ["triton", "naive"],
    [("bf16", None), ("int8", "token"), ("fp8_e4m3", "tensor")],
    few=lambda bug, implementation, stored: implementation == "triton" and stored[0] == ("int8" if bug.scaled else "bf16"),
)
def test_planted_bugs_are_caught_on_the_device(backend: CudaBackend, bug: Bug, implementation: str, stored: Stored) -> None:
    format_name, scaling = stored
    if bug.scaled and scaling is None:
        pytest.skip("has no scales to get wrong")
    case = on_cuda(implementation, format_name, "8/2x64", scaling=scaling)
    kernel = bug.wrap(prepared(backend, case, 1), sizes_of(case.workload))
    assert not [fresh_verdict(kernel, case, seed) for seed in (10, 11)][-1].passed


@pytest.mark.parametrize("bug", MASK_BUGS, ids=lambda bug: bug.name)
def test_one_key_more_or_less_is_caught_in_a_long_sequence(backend: CudaBackend, bug: Bug) -> None:
    for kv_len in (LONG, LONG - 5):
        case = on_cuda("triton", kv_len=kv_len, batch=2)
        kernel = bug.wrap(prepared(backend, case, 1), sizes_of(case.workload))
        assert not fresh_verdict(kernel, case, 10).passed


@grid(
    "stored, seeds",
    STORED,
    [8, 100],
    few=lambda stored, seeds: seeds == 8 and stored in (("bf16", None), ("fp8_e4m3", "tensor"), ("int8", "token")),
)
def test_sound_kernels_never_fail(backend: CudaBackend, stored: Stored, seeds: int) -> None:
    format_name, scaling = stored
    case = on_cuda("triton", format_name, scaling=scaling, lengths="uniform", shared_prefix=64)
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
