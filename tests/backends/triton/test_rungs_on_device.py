"""The kernels of quantised operands on the device at hand: right by every configuration, captured, tuned, caught when wrong."""

import pytest
import torch

from backends.triton import ladder
from backends.triton.gemm.device import Device, of_torch
from backends.triton.gemm.kernel import LaunchedKernel
from backends.triton.quantised import port
from backends.triton.quantised.kernel import QuantisedKernel
from backends.triton.quantised.weights import WeightOnly
from suite.case import Case
from tests.backends.cases import fresh_verdict, run_all
from tests.backends.cuda.helpers import NEEDS_DEVICE
from tests.backends.grid import diagonal, grid
from tests.backends.planted_bugs import BUGS, Bug
from tests.backends.triton.rungs import BLOCKS, BY_ROWS, MX4, NEEDS_FULL, QUANTISED, WEIGHT_ONLY, Rung, buffers_of, shared_of

pytestmark = NEEDS_DEVICE

SHAPES = [(1024, 768, 512), (333, 222, 384), (64, 1040, 2048), (16, 4096, 8192), (1, 80, 1024), (1, 1, 128)]
TWO_SHAPES = [(16, 2048, 4096), (200, 1000, 1536)]


def prepared(case: Case, sets: int, tuned: bool = False) -> LaunchedKernel:
    problem, device = ladder.problem_of(case), _device()
    told = ladder.not_taken(case.workload) or ladder.reason(problem, {}, device)
    if told:
        pytest.skip(told)
    kernel = ladder.prepare(problem, device, buffers_of(case, sets, device="cuda"), shared_of(case), 3, tuned=tuned)
    kernel.refill(3)
    return kernel


def _device() -> Device:
    return of_torch(0)


@grid("rung, shape", [*QUANTISED, *BY_ROWS], SHAPES, few=diagonal(3, [*QUANTISED, *BY_ROWS], SHAPES))
def test_matches_the_reference(rung: Rung, shape: tuple[int, int, int]) -> None:
    case = rung.case(*shape)
    kernel = prepared(case, 2)
    result = fresh_verdict(kernel, case, seed=4)
    assert result.passed, (result.reason, kernel.describe())


@grid("rung, shape", WEIGHT_ONLY, TWO_SHAPES, few=diagonal(2, WEIGHT_ONLY, TWO_SHAPES))
def test_every_configuration_computes_the_same(rung: Rung, shape: tuple[int, int, int]) -> None:
    case = rung.case(*shape)
    kernel = prepared(case, 2)
    assert isinstance(kernel, QuantisedKernel)
    for config in kernel.product.configs():
        kernel.adopt(port.make(kernel.product, config))
        for seed in (4, 5):  # a count of programs that is not 0 again afterwards would show the second time
            result = fresh_verdict(kernel, case, seed)
            assert result.passed, (config.label, result.reason)


def test_the_full_conversion_gives_the_bits_of_the_light_one() -> None:
    case = MX4.case(64, 512, 1024)
    kernel = prepared(case, 1)
    assert isinstance(kernel, QuantisedKernel)
    product = kernel.product
    assert isinstance(product, WeightOnly)
    kernel.enqueue(0)
    light = kernel.input_sets[0].output.clone()
    product.seen[0] = NEEDS_FULL
    assert product.conversion.kind == "mxfp4_full"
    kernel.adopt(port.make(product, product.configs()[0]))
    kernel.enqueue(0)
    assert kernel.describe()["conversion"] == "mxfp4_full to bf16 in registers"
    assert torch.equal(kernel.input_sets[0].output, light)


@pytest.mark.parametrize("rung", QUANTISED, ids=lambda rung: rung.name)
def test_launches_are_captured_and_grow_no_memory(rung: Rung) -> None:
    case = rung.case(16, 2048, 4096)
    kernel = prepared(case, 3)
    run_all(kernel)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run_all(kernel)
    graph.replay()
    torch.cuda.synchronize()
    reserved = torch.cuda.memory_reserved()
    for _ in range(20):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.cuda.memory_reserved() == reserved
    assert fresh_verdict(kernel, case, 7, graph.replay).passed


@grid("rung", QUANTISED, few=lambda rung: rung in (MX4, BLOCKS))
def test_what_was_tried_is_described(rung: Rung) -> None:
    case = rung.case(16, 4096, 4096)
    kernel = prepared(case, 2, tuned=True)
    described = kernel.describe()
    assert described["chosen_by"] == "trial"
    times_s = [each["time_s"] for each in described["tried"]]
    assert times_s == sorted(times_s)
    assert not [why for why in described["refused"].values() if "away from" in why], "every configuration computes the same"
    assert fresh_verdict(kernel, case, 8).passed


@grid("bug, rung", BUGS, QUANTISED, few=diagonal(6, BUGS, QUANTISED))
def test_every_planted_bug_is_caught(bug: Bug, rung: Rung) -> None:
    case = rung.case(160, 144, 512)
    kernel = bug.wrap(prepared(case, 1))
    assert not fresh_verdict(kernel, case, 11).passed
