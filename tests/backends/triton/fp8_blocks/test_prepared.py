"""One product by the kernel for Hopper made ready through Triton's own launch path, on a device that computes on the host."""

import json
from collections.abc import Callable, Iterator

import pytest
import torch

from backends.triton import ladder
from backends.triton.fp8_blocks import hopper
from backends.triton.gemm.kernel import LaunchedKernel
from backends.triton.quantised import port
from backends.triton.quantised.kernel import QuantisedKernel
from backends.triton.quantised.on_hopper import CONFIGS
from tests.backends.cases import addresses, fresh_verdict
from tests.backends.triton.conftest import HOPPER, Plug
from tests.backends.triton.fake_driver import FakeDriver, Launch
from tests.backends.triton.rungs import BLOCKS, buffers_of, shared_of

SIZES = (150, 264, 384)
Plugged = Callable[..., FakeDriver]


@pytest.fixture
def plugged(plug: Plug) -> Iterator[Plugged]:
    """The device of ``plug``; what was compiled of this kernel is forgotten too."""
    hopper.blocks_on_hopper.device_caches.clear()
    yield plug
    hopper.blocks_on_hopper.device_caches.clear()


def prepared(*sizes: int, sets: int = 1, tuned: bool = False) -> LaunchedKernel:
    case = BLOCKS.case(*(sizes or SIZES))
    problem = ladder.problem_of(case)
    assert ladder.reason(problem, {}, HOPPER, gluon=True) is None
    return ladder.prepare(problem, HOPPER, buffers_of(case, sets), shared_of(case), seed=3, tuned=tuned, gluon=True)


def compute(launch: Launch) -> None:
    """What the kernel does, by what it is given."""
    given = launch.arguments
    a, b, c = (given[name].base for name in "abc")
    m, n, k = (given[name] for name in "mnk")
    assert (a.shape, b.shape, c.shape, given["scale_rows"]) == ((m, k), (n, k), (m, n), m + -m % 16)
    a_scale = getattr(given["a_scale"], "base", given["a_scale"])[:, :m].t().double().repeat_interleave(128, 1)
    b_scale = given["b_scale_ptr"].double().repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)
    c.copy_((a.double() * a_scale) @ (b.double() * b_scale).t())


def test_a_launch_is_the_product_alone(plugged: Plugged) -> None:
    launches: list[Launch] = []
    plugged(lambda launch: (launches.append(launch), compute(launch)))
    case, kernel = BLOCKS.case(*SIZES), prepared(sets=2)
    assert not launches, "nothing is launched before it is asked for"
    before = addresses(kernel)
    assert fresh_verdict(kernel, case, seed=4).passed
    assert fresh_verdict(kernel, case, seed=5).passed, "scales of A are turned with each refill"
    assert addresses(kernel) == before
    assert len(launches) == 4, "no list of tiles is made"
    assert {launch.constants["DENSE"] for launch in launches} == {True}


def test_what_was_made_is_described(plugged: Plugged) -> None:
    launches: list[Launch] = []
    plugged(launches.append)
    kernel = prepared()
    described = kernel.describe()
    assert json.loads(json.dumps(described)) == described
    assert (described["language"], described["kernel"]) == ("Gluon", "blocks_on_hopper")
    assert (described["chosen_by"], described["loads"]) == ("a model of the device", "tensor descriptors, by a warp of its own")
    assert described["registers_that_multiply"] == 240
    assert (kernel.execution, described["emulation"]) == ("native", "")
    kernel.refill(1)
    kernel.enqueue(0)
    constants = launches[-1].constants
    assert described["tiles"] == f"128x{constants['BLOCK_N']}x128"
    assert (described["stages"], described["group"], described["sums"]) == tuple(
        constants[name] for name in ("STAGES", "GROUP", "SUMS")
    )


@pytest.mark.parametrize(("sizes", "programs"), [((1, 8, 128), 1), ((4096, 4096, 128), 132)])
def test_there_are_no_more_programs_than_tiles_or_units(plugged: Plugged, sizes: tuple[int, ...], programs: int) -> None:
    launches: list[Launch] = []
    plugged(launches.append)
    kernel = prepared(*sizes)
    kernel.refill(1)
    kernel.enqueue(0)
    assert launches[-1].grid == (programs, 1, 1)


def test_matrices_are_described_by_what_a_group_multiplies_and_a_part_stores(plugged: Plugged) -> None:
    launches: list[Launch] = []
    plugged(launches.append)
    kernel = prepared(4096, 4096, 128)
    kernel.refill(1)
    kernel.enqueue(0)
    given = launches[-1].arguments
    assert launches[-1].constants["BLOCK_N"] == 256
    assert [list(given[name].block_shape) for name in "abc"] == [[64, 128], [128, 128], [1, 1, 64, 128]]
    assert list(given["a_scale"].block_shape) == [1, 64]


@pytest.mark.parametrize("staged", [False, True])
def test_scales_of_a_are_described_where_they_come_with_their_block(plugged: Plugged, staged: bool) -> None:
    launches: list[Launch] = []
    plugged(lambda launch: (launches.append(launch), compute(launch)))
    case, kernel = BLOCKS.case(*SIZES), prepared()
    assert isinstance(kernel, QuantisedKernel)
    kernel.adopt(port.make(kernel.product, next(config for config in CONFIGS if config.staged is staged)))
    assert fresh_verdict(kernel, case, seed=4).passed
    given = launches[-1].arguments["a_scale"]
    assert list(given.block_shape) == [1, 64] if staged else given.dtype == torch.float32
    assert (kernel.describe()["scales"] == "staged with their block") is staged
