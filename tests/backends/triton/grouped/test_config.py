"""How grouped products are cut, and which devices and sizes are refused."""

import pytest

from backends.triton.gemm import config as plain
from backends.triton.gemm.device import Device
from backends.triton.gemm.problem import Problem as Plain
from backends.triton.grouped import hopper_call
from backends.triton.grouped.config import candidates, count, cycles, most_row_tiles, row_tiles, shared_bytes, tiles
from backends.triton.grouped.port import problem_of, reason
from backends.triton.grouped.problem import BLOCK, ROW, Problem
from suite.jobs.grouped_gemm import Sizes
from tests.backends.grouped.cases import SMALL, grouped_case
from tests.backends.triton.compiled import DEVICES

HOPPER, AMPERE = DEVICES["sm_90"], DEVICES["sm_80"]
EVEN = Problem("bf16", (8192,) * 4, 6144, 7168)
STEP = Problem("bf16", (4,) * 256, 4096, 7168)


def test_tiles_are_counted_group_by_group() -> None:
    problem = Problem("bf16", (5, 0, 70, 64, 1), 300, 64)
    assert row_tiles(64, problem) == 1 + 0 + 2 + 1 + 1
    assert count(64, 128, problem) == 5 * 3
    assert most_row_tiles(64, problem) == 140 // 64 + 5


@pytest.mark.parametrize("rows", [(1, 1, 1), (64, 64), (65, 1, 0), (0, 0, 640), (63, 63, 63)])
def test_the_most_tiles_that_there_can_be_are_no_fewer_than_there_are(rows: tuple[int, ...]) -> None:
    problem = Problem("bf16", rows, 64, 64)
    for block_m in (16, 64, 128):
        assert row_tiles(block_m, problem) <= most_row_tiles(block_m, problem)


def test_one_group_is_cut_as_a_plain_product_is() -> None:
    one, same = Problem("bf16", (8192,), 8192, 8192), Plain("bf16", 8192, 8192, 8192, "nt")
    assert candidates(one, HOPPER)[0] == plain.default(same, HOPPER)
    assert cycles(plain.DESCRIBED_TILES[0], one, HOPPER) == plain.cycles(plain.DESCRIBED_TILES[0], same, HOPPER)


def test_many_rows_take_tall_tiles_and_few_rows_flat_ones() -> None:
    assert candidates(EVEN, HOPPER)[0].block_m >= 128
    assert candidates(STEP, HOPPER)[0].block_m == 64


@pytest.mark.parametrize("device", DEVICES.values(), ids=lambda device: device.name)
@pytest.mark.parametrize("problem", [EVEN, STEP, EVEN._replace(k=7160), EVEN._replace(n=6145)], ids=["even", "step", "k", "n"])
def test_every_candidate_has_room_and_there_is_one_on_every_device(device: Device, problem: Problem) -> None:
    found = candidates(problem, device)
    assert found
    assert len(set(found)) == len(found)
    assert all(shared_bytes(config, problem, device) <= device.shared_bytes for config in found)
    assert all(config.resident * shared_bytes(config, problem, device) <= device.shared_bytes for config in found)


@pytest.mark.parametrize("name", ["sm_89", "sm_90", "sm_100", "gfx942", "gfx950"])
def test_scales_of_blocks_have_one_of_b_for_each_tile_and_block_of_k(name: str) -> None:
    problem = Problem("fp8_e4m3", (8192,) * 4, 6144, 7168, scales=BLOCK)
    found = candidates(problem, DEVICES[name])
    assert found
    assert all(128 % config.block_n == 0 and config.block_k == 128 for config in found)
    most = 128 if DEVICES[name].has_fp8 else 64
    assert all(tile.m <= most for tile in tiles(problem, DEVICES[name]))


def test_scales_of_blocks_take_room_on_their_way() -> None:
    by_row, blocks = (Problem("fp8_e4m3", (8192,), 6144, 7168, True, scales) for scales in (ROW, BLOCK))
    config = candidates(blocks, HOPPER)[0]
    assert shared_bytes(config, blocks, HOPPER) - shared_bytes(config, by_row, HOPPER) == config.stages * config.block_m * 4


@pytest.mark.parametrize(
    ("format_name", "scaling", "fast", "expected"),
    [
        ("bf16", None, False, ("none", False)),
        ("fp8_e4m3", "row", True, ("row", False)),
        ("fp8_e4m3", "row", False, ("row", True)),
        ("fp8_e4m3", "block", False, ("block", False)),
    ],
)
def test_a_workload_is_seen_with_its_scales_and_sums(
    format_name: str, scaling: str | None, fast: bool, expected: tuple[str, bool]
) -> None:
    workload = grouped_case("triton", format_name, Sizes(4, 64, 128, 256, alignment=32), scaling=scaling).workload
    problem = problem_of(workload, fast)
    assert (problem.scales, problem.promoted) == expected
    assert (problem.rows, problem.n, problem.k, problem.format) == ((32,) * 4, 128, 256, format_name)


def test_what_no_kernel_takes_is_refused_with_a_reason() -> None:
    eight = grouped_case("triton", "fp8_e4m3").workload
    assert reason("triton", eight, AMPERE) == "Triton has no fp8_e4m3 for sm_80"
    assert reason("triton", eight, HOPPER) is None
    assert "no configuration of this kernel is made for sm_70" in (reason("triton", eight, Device("70", 80, 98_304)) or "")
    assert "has room in 1024 bytes of shared memory" in (reason("triton", eight, HOPPER._replace(shared_bytes=1024)) or "")


@pytest.mark.parametrize(
    ("scaling", "sizes", "device", "said"),
    [
        ("block", SMALL, HOPPER, None),
        ("row", SMALL, HOPPER, "gluon takes fp8_e4m3 with scales of blocks; triton takes others"),
        ("block", SMALL, DEVICES["sm_100"], "gluon is written for sm_90, the device here is sm_100; triton is portable"),
        ("block", Sizes(1, 64, 130, 128), HOPPER, "gluon copies by tensor descriptors, and rows of C have 260 bytes"),
        ("block", SMALL, HOPPER._replace(shared_bytes=99_000), "no configuration of gluon has room in 99000 bytes"),
    ],
)
def test_the_kernel_for_hopper_says_what_it_does_not_take(scaling: str, sizes: Sizes, device: Device, said: str | None) -> None:
    told = reason("gluon", grouped_case("gluon", "fp8_e4m3", sizes, scaling=scaling).workload, device)
    assert told is None if said is None else (told or "").startswith(said)


def test_on_hopper_as_many_stages_are_on_their_way_as_have_room() -> None:
    assert [config.stages for config in hopper_call.candidates(HOPPER)] == [6, 5, 4]
    assert [config.stages for config in hopper_call.candidates(HOPPER._replace(shared_bytes=200_000))] == [5, 4]


def test_rows_of_all_bs_together_have_a_place_in_32_bits() -> None:
    wide = grouped_case("triton", "bf16", Sizes(1024, 1024, 1 << 21, 16)).workload
    told = reason("triton", wide, HOPPER) or ""
    assert told.endswith("rows of B in all groups together, not 2147483648")
