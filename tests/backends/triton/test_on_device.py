"""The kernels on the device at hand: right in every format and layout, captured, tuned, and caught when they are wrong."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from backends.cuda import CudaBackend
from backends.triton.gemm.problem import NUMBERS
from suite.case import Case
from tests.backends.cases import fresh_verdict, run_all
from tests.backends.cuda.helpers import NEEDS_DEVICE, WARM, cold_sets, graph_of, on_cuda, prepared
from tests.backends.grid import diagonal, grid
from tests.backends.planted_bugs import BUGS, Bug

pytestmark = NEEDS_DEVICE

FORMATS = tuple(NUMBERS)
LAYOUTS = ("nt", "nn", "tn", "tt")
# Whole tiles; edges in every direction, in rows of 16 bytes; rows that no descriptor has; fewer rows and terms than a tile.
SHAPES = [(1024, 768, 512), (1008, 272, 208), (333, 223, 111), (16, 1040, 2048), (1, 16, 16), (1, 1, 1)]


@pytest.fixture(scope="module")
def backend() -> CudaBackend:
    made = CudaBackend()
    made.select(0)
    return made


def triton_case(format_name: str, *sizes: int, implementation: str = "triton", **options: Any) -> Case:
    return replace(on_cuda(format_name, *sizes, **options), implementation=implementation)


@grid("format_name, layout, shape", FORMATS, LAYOUTS, SHAPES, few=diagonal(4, FORMATS, LAYOUTS, SHAPES))
def test_matches_the_reference(backend: CudaBackend, format_name: str, layout: str, shape: tuple[int, int, int]) -> None:
    case = triton_case(format_name, *shape, layout=layout)
    kernel = prepared(backend, case, 2)
    result = fresh_verdict(kernel, case, seed=4)
    assert result.passed, (result.reason, kernel.describe())


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_large_product_has_no_wrong_tile(backend: CudaBackend, format_name: str) -> None:
    """More tiles than programs: each goes through several."""
    case = triton_case(format_name, 4096, 4224, 2048)
    result = fresh_verdict(prepared(backend, case, 2), case, seed=4)
    assert result.passed, result.reason


def test_promotion_takes_away_what_fast_accumulation_adds(backend: CudaBackend) -> None:
    errors = []
    for fast in (True, False):
        case = triton_case("fp8_e4m3", 512, 512, 16384, switches={"fp8_fast_accum": fast})
        result = fresh_verdict(prepared(backend, case, 1), case, seed=4)
        assert result.passed, result.reason
        assert result.error_rel is not None
        errors.append(result.error_rel)
    if torch.cuda.get_device_capability(0)[0] == 9:
        assert errors[1] < errors[0]


@pytest.mark.parametrize("implementation", ["triton", "triton_tuned"])
def test_launches_are_captured_and_grow_no_memory(backend: CudaBackend, implementation: str) -> None:
    case = triton_case("bf16", 2048, 2048, 1024, implementation=implementation)
    kernel = prepared(backend, case, cold_sets(backend, case))
    sampler = graph_of(backend, kernel, case)
    sampler.sample(2)
    torch.cuda.synchronize()
    reserved = torch.cuda.memory_reserved()
    for _ in range(20):
        run_all(kernel)
    sampler.sample(5)
    torch.cuda.synchronize()
    assert torch.cuda.memory_reserved() == reserved
    assert fresh_verdict(kernel, case, 7, sampler.replay).passed


def test_what_was_tried_is_described(backend: CudaBackend) -> None:
    case = triton_case("bf16", 2048, 2048, 2048, implementation="triton_tuned")
    described = prepared(backend, case, 2).describe()
    assert described["chosen_by"] == "trial"
    assert described["tuning_s"] > 0
    times_s = [each["time_s"] for each in described["tried"]]
    assert times_s == sorted(times_s)
    assert len(times_s) > 3
    assert not [why for why in described["refused"].values() if "away from" in why], "every configuration computes the same"


@pytest.mark.parametrize("format_name", FORMATS)
def test_the_default_for_a_large_product_is_native_and_spills_nothing(backend: CudaBackend, format_name: str) -> None:
    kernel = prepared(backend, triton_case(format_name, 8192, 8192, 1024), 1)
    described = kernel.describe()
    assert kernel.execution == "native", described["emulation"]
    assert described["spilled_words"] == 0
    assert 0 < described["registers"] <= 255


@grid("bug, format_name", BUGS, FORMATS, few=diagonal(5, BUGS, FORMATS))
def test_every_planted_bug_is_caught_through_the_timed_path(backend: CudaBackend, bug: Bug, format_name: str) -> None:
    case = triton_case(format_name, 160, 144, 512, regime=WARM)
    kernel = bug.wrap(prepared(backend, case, 1))
    run_all(kernel)
    sampler = graph_of(backend, kernel, case)
    assert not fresh_verdict(kernel, case, 11, sampler.replay).passed
