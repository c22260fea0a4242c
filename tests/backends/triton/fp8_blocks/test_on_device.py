"""The kernel for Hopper on the device at hand: right by every configuration, at sizes that its tiles divide and others."""

from dataclasses import replace

import pytest
import torch

from backends.triton import ladder
from backends.triton.gemm.device import of_torch
from backends.triton.quantised import port
from backends.triton.quantised.kernel import QuantisedKernel
from backends.triton.quantised.on_hopper import CONFIGS
from suite.case import Case
from tests.backends.cases import fresh_verdict, run_all
from tests.backends.cuda.helpers import NEEDS_DEVICE
from tests.backends.grid import diagonal, grid
from tests.backends.planted_bugs import BUGS, Bug
from tests.backends.triton.rungs import BLOCKS, buffers_of, shared_of

pytestmark = NEEDS_DEVICE

# Whole tiles in several turns, one tile, odd rows, columns of half a part, blocks of K in odd and even numbers, and one row.
SHAPES = [
    (4096, 4096, 4096),
    (128, 256, 128),
    (1000, 1536, 1152),
    (333, 200, 640),
    (1, 8192, 1024),
    (129, 392, 256),
    (1, 8, 128),
]


def prepared(case: Case, sets: int = 2, *, tuned: bool = False) -> QuantisedKernel:
    problem, device = ladder.problem_of(case), of_torch(0)
    told = ladder.reason(problem, {}, device, gluon=True)
    if told:
        pytest.skip(told)
    buffers = buffers_of(case, sets, device="cuda")
    kernel = ladder.prepare(problem, device, buffers, shared_of(case), 3, tuned=tuned, gluon=True)
    assert isinstance(kernel, QuantisedKernel)
    kernel.refill(3)
    return kernel


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matches_the_reference(shape: tuple[int, int, int]) -> None:
    case = BLOCKS.case(*shape)
    kernel = prepared(case)
    for seed in (4, 5):
        result = fresh_verdict(kernel, case, seed)
        assert result.passed, (result.reason, kernel.describe())


LABELS = [config.label for config in CONFIGS]


@grid("label, shape", LABELS, SHAPES[1:], few=diagonal(3, LABELS, SHAPES[1:]))
def test_every_configuration_computes_the_same(label: str, shape: tuple[int, int, int]) -> None:
    case = BLOCKS.case(*shape)
    kernel = prepared(case)
    config = next(each for each in CONFIGS if each.label == label)
    kernel.adopt(port.make(kernel.product, config))
    for seed in (4, 5):
        result = fresh_verdict(kernel, case, seed)
        assert result.passed, (label, result.reason)


@pytest.mark.parametrize("label", LABELS)
def test_a_large_square_is_right_by_every_configuration(label: str) -> None:
    """Many blocks of K and several tiles a program: buffers and turns go round many times."""
    test_every_configuration_computes_the_same(label, (2048, 4096, 4096))


def test_distributions_that_round_differently_are_right_too() -> None:
    for distribution in ("uniform", "outliers", "constant", "zeros"):
        case = BLOCKS.case(1000, 1536, 1152)
        case = replace(case, workload=replace(case.workload, distribution=distribution))
        assert fresh_verdict(prepared(case), case, 6).passed, distribution


def test_launches_are_captured_and_what_was_tried_is_right() -> None:
    case = BLOCKS.case(1000, 1536, 1152)
    kernel = prepared(case, 3, tuned=True)
    refused = kernel.describe()["refused"]
    assert not [why for why in refused.values() if "away from" in why], refused
    run_all(kernel)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run_all(kernel)
    assert fresh_verdict(kernel, case, 7, graph.replay).passed


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_every_planted_bug_is_caught(bug: Bug) -> None:
    case = BLOCKS.case(160, 144, 512)
    assert not fresh_verdict(bug.wrap(prepared(case, 1)), case, 11).passed
