"""A grouped case made ready through Triton's own compiler and launch path, on a device that computes on the host."""

import json
from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch

from backends.triton.fp8_blocks import hopper
from backends.triton.gemm.config import Config
from backends.triton.gemm.device import Device
from backends.triton.grouped import kernels, port
from suite.jobs.grouped_gemm import Sizes
from tests.backends.cases import addresses, run_all
from tests.backends.fake_cuda import FakeCuda
from tests.backends.grouped.cases import fresh_verdict, grouped_case, prepared
from tests.backends.triton.conftest import ANY, Plug
from tests.backends.triton.fake_driver import STREAM, FakeDriver, Launch, tensor_of

SIZES = Sizes(6, 150, 80, 64, "skewed")
AMPERE = Device("80", 108, 166_912)
Plugged = Callable[..., FakeDriver]


@pytest.fixture
def plugged(plug: Plug) -> Iterator[Plugged]:
    """The device of ``plug``; what was compiled of these kernels is forgotten too."""

    def forget() -> None:
        for kernel in (kernels.schedule, kernels.grouped_by_descriptors, kernels.grouped_by_pointers, hopper.blocks_on_hopper):
            kernel.device_caches.clear()

    forget()
    yield plug
    forget()


def compute(launch: Launch) -> None:
    """What the kernels do, by what they are given."""
    tile_list, ends = (launch.arguments[name] for name in ("list_ptr", "ends_ptr"))
    block_m = launch.constants["BLOCK_M"]
    if "groups" in launch.arguments:
        starts = [0, *ends.tolist()[:-1]]
        pairs = enumerate(zip(starts, ends.tolist(), strict=True))
        tiles = [(group, row) for group, (start, end) in pairs for row in range(start, end, block_m)]
        assert len(tiles) <= launch.grid[0] * launch.constants["STEP"]
        tile_list[: 1 + 2 * len(tiles)] = torch.tensor([len(tiles), *(number for tile in tiles for number in tile)])
        return
    a, b, c = (tensor_of(launch, name) for name in "abc")
    n, numbers = launch.arguments["n"], tile_list.tolist()
    for tile in range(numbers[0]):
        group, row = numbers[1 + 2 * tile : 3 + 2 * tile]
        end = min(row + block_m, int(ends[group]))
        c[row:end] = (a[row:end].double() @ b[group * n : (group + 1) * n].double().t()).to(c.dtype)


def test_a_launch_lists_the_tiles_and_then_computes_them(plugged: Plugged) -> None:
    launches: list[Launch] = []
    plugged(lambda launch: (launches.append(launch), compute(launch)))
    case = grouped_case("triton", "bf16", SIZES)
    kernel = prepared(case, sets=2, target=ANY)
    assert not launches, "nothing is launched before it is asked for"
    assert fresh_verdict(kernel, case, seed=4).passed
    assert [("groups" in launch.arguments, launch.stream) for launch in launches] == [(True, STREAM), (False, STREAM)] * 2
    schedule, product = launches[:2]
    assert schedule.arguments["groups"] == 6
    assert [product.arguments[name] for name in ("n", "k")] == [80, 64]
    assert product.arguments["list_ptr"] is schedule.arguments["list_ptr"]
    assert product.constants["BLOCK_M"] == schedule.constants["BLOCK_M"]
    assert product.arguments["c_desc"].block_shape[2] == product.constants["BLOCK_M"]


def test_on_hopper_the_kernel_of_its_own_is_launched_on_the_same_list(plugged: Plugged) -> None:
    launches: list[Launch] = []
    plugged(launches.append)
    kernel = prepared(grouped_case("gluon", "fp8_e4m3", SIZES._replace(n=128, k=256), scaling="block"), target=ANY)
    kernel.refill(9)
    run_all(kernel)
    schedule, product = launches
    assert schedule.constants["BLOCK_M"] == 128
    assert product.arguments["list_ptr"] is schedule.arguments["list_ptr"]
    assert [product.arguments[name] for name in ("n", "k", "scale_rows")] == [128, 256, 160]
    assert [list(product.arguments[name].block_shape) for name in "abc"] == [[64, 128], [128, 128], [1, 1, 64, 128]]
    assert product.grid == (150 // 128 + 6, 1, 1)
    described = kernel.describe()
    assert json.loads(json.dumps(described)) == described
    assert (described["kernel"], described["tiles"], described["stages"]) == ("blocks_on_hopper", "128x128x128", 6)
    assert described["loads"] == "tensor descriptors, by a warp of its own"
    assert (described["emulation"], described["chosen_by"]) == ("", "the first of a table that fits")


def test_fresh_data_go_into_the_buffers_that_the_launches_know(plugged: Plugged) -> None:
    plugged(compute)
    case = grouped_case("triton", "fp16", SIZES)
    kernel = prepared(case, sets=2, target=ANY)
    before = addresses(kernel)
    assert fresh_verdict(kernel, case, seed=5).passed
    assert fresh_verdict(kernel, case, seed=6).passed
    assert addresses(kernel) == before


def test_scales_of_blocks_of_a_are_turned_with_each_refill(plugged: Plugged) -> None:
    launches: list[Launch] = []
    plugged(launches.append)
    kernel = prepared(grouped_case("triton", "fp8_e4m3", SIZES._replace(n=128, k=256), scaling="block"), target=ANY)
    kernel.refill(9)
    run_all(kernel)
    given = launches[-1].arguments
    stored = kernel.input_sets[0].operands[0].quantised.scales
    assert given["a_scale_ptr"].shape == (2, 160)  # whole units of sixteen
    assert torch.equal(given["a_scale_ptr"][:, :150], stored.t())
    assert given["scale_rows"] == 160


def test_the_description_says_how_the_product_is_cut_and_that_the_list_is_timed(plugged: Plugged) -> None:
    plugged(compute)
    described = prepared(grouped_case("triton", "bf16", SIZES), target=ANY).describe()
    assert json.loads(json.dumps(described)) == described
    assert (described["kernel"], described["passes"]) == ("grouped_by_descriptors", ["schedule"])
    assert (described["loads"], described["chosen_by"]) == ("tensor descriptors", "a model of the device")
    assert described["schedule"].startswith("in each launch, on the device")
    assert any(name.startswith("wgmma") for name in described["instructions"])
    assert (described["emulation"], described["spilled_words"]) == ("", 0)


def test_without_descriptors_there_is_a_program_for_each_tile_that_there_could_be(plugged: Plugged) -> None:
    launches: list[Launch] = []
    plugged(lambda launch: (launches.append(launch), compute(launch)), AMPERE)
    case = grouped_case("triton", "bf16", SIZES)
    kernel = prepared(case, target=ANY)
    assert fresh_verdict(kernel, case, seed=4).passed
    described = kernel.describe()
    block_m, block_n, _ = (int(size) for size in described["tiles"].split("x"))
    assert launches[1].grid == ((150 // block_m + 6) * -(-80 // block_n), 1, 1)
    assert described["loads"] == "pointers: sm_80 has no tensor descriptors"


def test_the_fastest_configuration_is_taken_and_a_wrong_one_refused(plugged: Plugged, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of 64 rows are the fastest here, but the one of two slices writes nothing."""
    cuda = FakeCuda()

    def launched(launch: Launch) -> None:
        def work() -> None:
            if "groups" in launch.arguments:
                compute(launch)
                return
            cuda.device_s += 1e-5 if launch.constants["BLOCK_M"] == 64 else 2e-5
            if launch.constants["SLICES"] == 1:
                compute(launch)

        cuda.run(work)

    plugged(launched)
    base = Config(128, 32, 64, 4, 2, 8)
    choices = [base, base._replace(block_m=64), base._replace(block_m=64, slices=2)]
    monkeypatch.setattr(port, "candidates", lambda problem, device: choices)
    monkeypatch.setattr(port, "make", partial(port.make, cuda=cuda))
    case = grouped_case("triton_tuned", "bf16", Sizes(3, 200, 64, 64, "balanced"))
    kernel = prepared(case, target=ANY)
    described = kernel.describe()
    assert (described["chosen_by"], described["tiles"]) == ("trial", "64x32x64")
    assert described["tried"][0]["time_s"] == pytest.approx(1e-5)
    ((label, why),) = described["refused"].items()
    assert "2 slices" in label
    assert "away from that of the first configuration" in why
    assert fresh_verdict(kernel, case, seed=9).passed
