"""Products of every format on the device, right and wrong."""

import pytest
import torch

from backends.cuda import CudaBackend
from backends.torch import jobs
from backends.torch.target import cuda_target
from suite.outcome import Outcome
from tests.backends.cases import EVERY_FORMAT, fresh_verdict, run_all, verdict
from tests.backends.cuda.helpers import NEEDS_DEVICE, WARM, graph_of, on_cuda, prepared
from tests.backends.grid import diagonal, grid
from tests.backends.planted_bugs import BUGS, Bug

pytestmark = NEEDS_DEVICE

OTHERS = ["uniform", "integer", "zeros", "constant", "outliers"]
# Awkward sizes that the libraries take: int8 wants m > 16 and multiples of 8, fp8 multiples of 16.
SHAPES = [(17, 48, 64), (33, 16, 4096), (1000, 272, 80), (256, 1024, 512)]
FREE_SHAPES = [(1, 1, 1), (17, 33, 65), (1, 300, 257), (513, 1, 31)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("format_name", EVERY_FORMAT)
def test_every_format(backend: CudaBackend, format_name: str, shape: tuple[int, int, int]) -> None:
    case = on_cuda(format_name, *shape)
    kernel = prepared(backend, case, 2)
    run_all(kernel)
    result = verdict(kernel, case)
    assert result.passed, result.reason


@pytest.mark.parametrize("shape", FREE_SHAPES, ids=str)
@pytest.mark.parametrize("format_name", ["fp64", "fp32", "tf32", "bf16", "fp16"])
def test_sizes_that_only_floating_point_takes(backend: CudaBackend, format_name: str, shape: tuple[int, int, int]) -> None:
    case = on_cuda(format_name, *shape)
    kernel = prepared(backend, case, 1)
    assert fresh_verdict(kernel, case, seed=4).passed


@pytest.mark.parametrize("layout", ["nn", "tn"])
@pytest.mark.parametrize("format_name", EVERY_FORMAT)
def test_other_layouts_are_right_or_unsupported(backend: CudaBackend, format_name: str, layout: str) -> None:
    case = on_cuda(format_name, 256, 272, 512, layout=layout)
    kernel = prepared(backend, case, 1)
    try:
        run_all(kernel)
    except RuntimeError as error:
        failure = backend.classify(error)
        assert (failure.outcome, failure.fatal) == (Outcome.UNSUPPORTED, False), failure.reason
        pytest.skip(failure.reason)
    assert verdict(kernel, case).passed


@grid("format_name, distribution", EVERY_FORMAT, OTHERS, few=diagonal(5, EVERY_FORMAT, OTHERS))
def test_every_distribution(backend: CudaBackend, format_name: str, distribution: str) -> None:
    case = on_cuda(format_name, 128, 128, 256, distribution=distribution)
    assert fresh_verdict(prepared(backend, case, 1), case, seed=7).passed


@grid("format_name, seeds", EVERY_FORMAT, [20, 200], few=lambda _, seeds: seeds == 20)
def test_a_sound_kernel_never_fails(backend: CudaBackend, format_name: str, seeds: int) -> None:
    case = on_cuda(format_name, 512, 384, 1024)
    kernel = prepared(backend, case, 1)
    failed = [result.reason for seed in range(seeds) if not (result := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []


@pytest.mark.parametrize("format_name", EVERY_FORMAT)
def test_a_large_product_over_many_seeds(backend: CudaBackend, format_name: str) -> None:
    case = on_cuda(format_name, 2048, 2048, 8192)
    kernel = prepared(backend, case, 1)
    failed = [result.reason for seed in range(10) if not (result := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []


def test_what_the_libraries_are_said_to_refuse_they_do_refuse(backend: CudaBackend) -> None:
    """A reason that has stopped being true would hide cases for nothing."""
    for case in (on_cuda("int8", 16, 32, 32), on_cuda("int8", 32, 33, 32), on_cuda("fp8_e4m3", 32, 40, 32)):
        assert backend.supports(case) is not None
        kernel = jobs.prepare(case, cuda_target(0, torch.cuda.get_device_capability(0)), 1, 3)
        with pytest.raises(RuntimeError) as caught:
            run_all(kernel)
        assert backend.classify(caught.value).outcome is Outcome.UNSUPPORTED


@grid("bug, format_name", BUGS, EVERY_FORMAT, few=diagonal(7, BUGS, EVERY_FORMAT))
def test_every_planted_bug_is_caught_through_the_timed_path(backend: CudaBackend, bug: Bug, format_name: str) -> None:
    case = on_cuda(format_name, 160, 144, 512, regime=WARM)
    kernel = bug.wrap(prepared(backend, case, 1))
    run_all(kernel)
    sampler = graph_of(backend, kernel, case)
    assert not fresh_verdict(kernel, case, 11, sampler.replay).passed
