"""The precision ladder on the device: as it is stored where a library takes it so, converted where none does."""

import pytest
import torch

from backends.cuda import CudaBackend
from backends.torch.gemm.operands import QuantisedOperand
from backends.torch.kernel import TorchKernel
from suite.case import Case
from suite.outcome import Outcome
from tests.backends.cases import fresh_verdict, run_all
from tests.backends.cuda.helpers import NEEDS_DEVICE, WARM, graph_of
from tests.backends.grid import diagonal, grid
from tests.backends.ladder import ladder, title

pytestmark = NEEDS_DEVICE

OTHERS = ["uniform", "integer", "zeros", "constant", "outliers"]
# What every call takes: more than 16 rows in fours, n and k in sixteens, K in whole groups of 128.
SHAPES = [(32, 48, 256), (20, 16, 4096), (1000, 576, 896), (256, 1024, 512)]


def on_device(backend: CudaBackend, case: Case, seed: int = 3) -> TorchKernel:
    reason = backend.supports(case)
    assert reason is None, reason
    kernel = backend.prepare(case, 1, seed)
    assert isinstance(kernel, TorchKernel)
    return kernel


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("index", range(21))
def test_a_product_is_that_of_the_stored_numbers(backend: CudaBackend, index: int, shape: tuple[int, int, int]) -> None:
    case = ladder(*shape, backend="cuda")[index]
    kernel = on_device(backend, case)
    for seed in (5, 6):
        result = fresh_verdict(kernel, case, seed)
        assert result.passed, (title(case), kernel.describe()["call"], result.reason)
    assert (kernel.execution == "emulated") is bool(kernel.describe()["emulation"])


@grid("index, distribution", range(21), OTHERS, few=diagonal(5, range(21), OTHERS))
def test_every_distribution(backend: CudaBackend, index: int, distribution: str) -> None:
    case = ladder(128, 128, 256, distribution=distribution, backend="cuda")[index]
    assert fresh_verdict(on_device(backend, case), case, seed=7).passed


@pytest.mark.parametrize("index", range(21))
def test_a_captured_launch_follows_its_data(backend: CudaBackend, index: int) -> None:
    """What a graph replays reads the buffers that a refill wrote, scales and packed weights among them."""
    case = ladder(256, 256, 512, backend="cuda", regime=WARM)[index]
    kernel = on_device(backend, case)
    sampler = graph_of(backend, kernel, case)
    for seed in (11, 12):
        assert fresh_verdict(kernel, case, seed, sampler.replay).passed
    sampler.close()


@pytest.mark.parametrize("index", range(21))
def test_a_large_product(backend: CudaBackend, index: int) -> None:
    case = ladder(2048, 2048, 8192, backend="cuda")[index]
    kernel = on_device(backend, case)
    failed = [result.reason for seed in range(3) if not (result := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []


@pytest.mark.parametrize("shape", [(17, 17, 128), (1, 128, 128), (1, 40, 128), (3, 8, 256)], ids=str)
@pytest.mark.parametrize("index", range(21))
def test_small_and_odd_sizes_are_right_or_unsupported(backend: CudaBackend, index: int, shape: tuple[int, int, int]) -> None:
    case = ladder(*shape, backend="cuda")[index]
    unsupported = backend.supports(case)
    if unsupported is not None:
        pytest.skip(unsupported)
    kernel = backend.prepare(case, 1, 3)
    try:
        kernel.enqueue(0)
        backend.synchronize()
    except RuntimeError as error:
        failure = backend.classify(error)
        assert (failure.outcome, failure.fatal) == (Outcome.UNSUPPORTED, False), failure.reason
        pytest.skip(failure.reason)
    assert fresh_verdict(kernel, case, seed=8).passed


@pytest.mark.parametrize("index", range(21))
def test_a_scale_that_the_library_misreads_is_found(backend: CudaBackend, index: int) -> None:
    """An eighth of one, of B, in what a launch reads; the check reads it as it was stored."""
    case = ladder(64, 64, 256, backend="cuda")[index]
    kernel = on_device(backend, case)
    _, b = kernel.input_sets[0].operands
    scales = b.quantised.scales if isinstance(b, QuantisedOperand) else b.scale
    if scales is None:
        pytest.skip(f"{title(case)} has no scales")
    arrangements = b.arrangements if isinstance(b, QuantisedOperand) else []

    def launch_with_one_misread() -> None:
        stored = scales.clone()
        first = scales.view(-1)[:1]
        first.copy_((first.to(torch.float32) / 8).to(scales.dtype))
        for arrange in arrangements:
            arrange()
        run_all(kernel)
        scales.copy_(stored)

    assert fresh_verdict(kernel, case, seed=11).passed
    assert not fresh_verdict(kernel, case, seed=11, run=launch_with_one_misread).passed
