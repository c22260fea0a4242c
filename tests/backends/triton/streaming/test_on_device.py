"""Decode steps on the device: every implementation that it has, right and wrong, launch by launch and in graphs."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from backends.cuda import CudaBackend
from suite.case import Case, Regime
from suite.jobs.decode_step import FORMATS, IMPLEMENTATIONS
from tests.backends.cuda.helpers import NEEDS_DEVICE, SAMPLE_S, WARM, cold_sets, graph_of
from tests.backends.decode_step.cases import fresh_verdict, step_case
from tests.backends.grid import diagonal, grid
from tests.backends.triton.streaming.prepared import BUGS

pytestmark = NEEDS_DEVICE

IN_PAGES = ("stale page", "a key of another token overwritten")
WIDE: dict[str, Any] = {
    "layers": 3,
    "hidden_sizes": 1024,
    "heads": "8/2x128",
    "intermediate_sizes": 2816,
    "vocabularies": 4003,
    "kv_lens": [1000],
    "page_sizes": [16],
}
BATCHES = (1, 2, 5, 16, 33, 64)
CALL = Regime("warm", "sustained", "call")


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


def on_cuda(implementation: str, format_name: str = "bf16", part: str = "step", **more: Any) -> Case:
    return step_case(implementation, format_name, part, backend="cuda", **{**WIDE, **more})


def prepared(backend: CudaBackend, case: Case, sets: int = 1) -> Any:
    reason = backend.supports(case)
    if reason is not None:
        pytest.skip(reason)
    return backend.prepare(case, sets, 3)


@grid(
    "implementation, format_name, batch",
    ["library", "triton"],
    FORMATS["step"],
    BATCHES,
    few=lambda _, format_name, batch: diagonal(3, FORMATS["step"], BATCHES)(format_name, batch),
)
def test_every_implementation_is_right(backend: CudaBackend, implementation: str, format_name: str, batch: int) -> None:
    case = on_cuda(implementation, format_name, batches=[batch])
    result = fresh_verdict(prepared(backend, case, 2), case, 5)
    assert result.passed, result.reason


OTHER_SIZES: tuple[dict[str, Any], ...] = (
    {"heads": "8x64"},
    {"heads": "16/1x128"},
    {"heads": "8/2x256"},
    {"kv_lens": [1]},
    {"kv_lens": [20_000], "page_sizes": [1]},
    {"hidden_sizes": 1040, "intermediate_sizes": 720},
)


@grid("batch, more", [1, 3], OTHER_SIZES, few=diagonal(2, [1, 3], OTHER_SIZES))
def test_sizes_of_every_kind(backend: CudaBackend, batch: int, more: dict[str, Any]) -> None:
    case = on_cuda("triton", batches=[batch], **more)
    result = fresh_verdict(prepared(backend, case), case, 6)
    assert result.passed, result.reason


@grid(
    "implementation, format_name, batch",
    IMPLEMENTATIONS,
    FORMATS["weights"],
    [1, 8],
    few=lambda name, format_name, batch: (
        diagonal(2, FORMATS["weights"], [1, 8])(format_name, batch) and (name != "triton_tuned" or format_name == "bf16")
    ),
)
def test_weights_of_every_format(backend: CudaBackend, implementation: str, format_name: str, batch: int) -> None:
    case = on_cuda(implementation, format_name, "weights", batches=[batch], vocabularies=4096)
    result = fresh_verdict(prepared(backend, case), case, 7)
    assert result.passed, result.reason


@pytest.mark.parametrize("batch", [1, pytest.param(8, marks=pytest.mark.thorough)])
def test_the_fastest_of_several_configurations_is_right_whether_launches_depend_or_not(
    backend: CudaBackend, batch: int
) -> None:
    case = on_cuda("triton_tuned", batches=[batch])
    kernel = prepared(backend, case, cold_sets(backend, case))
    result = fresh_verdict(kernel, case, 5)
    assert result.passed, result.reason
    described = kernel.describe()
    assert all(each["chosen_by"] == "trial" for each in described["products"].values())
    assert not described["order_tried"]["refused"]
    sampler = graph_of(backend, kernel, case)
    sampler.sample(3)
    again = fresh_verdict(kernel, case, 8, run=sampler.replay)
    assert again.passed, again.reason
    sampler.close()


@pytest.mark.parametrize("implementation", ["library", "triton"])
@pytest.mark.parametrize("part", ["step", "weights"])
def test_graphs_work_on_the_data_that_came_after_them(backend: CudaBackend, part: str, implementation: str) -> None:
    case = on_cuda(implementation, part=part, regime=WARM, batches=[2])
    kernel = prepared(backend, case)
    sampler = graph_of(backend, kernel, case)
    sampler.sample(3)
    for seed in (8, 9):
        result = fresh_verdict(kernel, case, seed, run=sampler.replay)
        assert result.passed, result.reason
    sampler.close()


@pytest.mark.parametrize("implementation", ["library", "triton"])
def test_what_a_caller_waits_for_is_measured(backend: CudaBackend, implementation: str) -> None:
    case = on_cuda(implementation, regime=CALL)
    kernel = prepared(backend, case)
    sampler = backend.sampler(kernel, case, SAMPLE_S)
    assert sampler.method == "host"
    assert min(sampler.sample(5)) > 0
    assert fresh_verdict(kernel, case, 8, run=sampler.replay).passed
    sampler.close()


@grid(
    "name, implementation",
    [name for name in BUGS if name not in IN_PAGES],
    ["library", "triton"],
    few=lambda _, implementation: implementation == "triton",
)
def test_planted_bugs_are_caught_on_the_device(backend: CudaBackend, name: str, implementation: str) -> None:
    case = on_cuda(implementation, batches=[2], vocabularies=4000)
    kernel = prepared(backend, case)
    each = kernel.buffers[0]
    assert not fresh_verdict(kernel, case, 10, run=lambda: BUGS[name](kernel, each)).passed
    assert fresh_verdict(kernel, case, 10).passed


@pytest.mark.parametrize("name", IN_PAGES)
def test_planted_bugs_in_pages_are_caught_on_the_device(backend: CudaBackend, name: str) -> None:
    case = on_cuda("triton", batches=[2], kv_lens=[200])
    kernel = prepared(backend, case)
    each = kernel.buffers[0]
    assert not fresh_verdict(kernel, case, 10, run=lambda: BUGS[name](kernel, each)).passed


@pytest.mark.parametrize("seeds", [5, pytest.param(50, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("implementation", ["library", "triton"])
def test_sound_steps_never_fail(backend: CudaBackend, implementation: str, seeds: int) -> None:
    case = on_cuda(implementation, batches=[3])
    kernel = prepared(backend, case)
    failed = [result.reason for seed in range(seeds) if not (result := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []
