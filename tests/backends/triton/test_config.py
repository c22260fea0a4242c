"""Configurations: what the model chooses, and that everything offered fits."""

import math

import pytest

from backends.triton.gemm.config import (
    Tile,
    by_descriptors,
    candidates,
    configured,
    count,
    cycles,
    default,
    fits,
    shared_bytes,
    tiles,
)
from backends.triton.gemm.device import Device
from backends.triton.gemm.problem import NUMBERS, Problem
from tests.backends.triton.compiled import DEVICES

HOPPER = DEVICES["sm_90"]
SHAPES = [(8192, 8192, 8192), (1, 8192, 8192), (16, 28672, 8192), (2048, 10240, 8192), (333, 222, 111), (1, 1, 1), (64, 64, 64)]


def square(side: int, format_name: str = "bf16", layout: str = "nt", promoted: bool = False) -> Problem:
    return Problem(format_name, side, side, side, layout, promoted)


def test_a_large_square_on_hopper_has_what_was_found_best_there() -> None:
    config = default(square(8192), HOPPER)
    assert (config.tiles, config.warps, config.stages, config.slices) == ("128x256x64", 8, 3, 1)
    assert 8 <= config.group <= 16
    assert default(square(8192, "fp8_e4m3"), HOPPER).block_k == 128


def test_promoted_sums_get_tiles_with_room_for_two_accumulators() -> None:
    plain, promoted = default(square(8192, "fp8_e4m3"), HOPPER), default(square(8192, "fp8_e4m3", promoted=True), HOPPER)
    assert plain.block_m * plain.block_n == 2 * promoted.block_m * promoted.block_n
    assert promoted.block_k == 128  # so many products are summed before they are promoted


@pytest.mark.parametrize("sizes", SHAPES, ids=str)
@pytest.mark.parametrize("device", DEVICES.values(), ids=lambda device: device.name)
def test_everything_offered_fits(device: Device, sizes: tuple[int, int, int]) -> None:
    for format_name in NUMBERS:
        for layout in ("nt", "nn", "tn", "tt"):
            for promoted in (False, True) if format_name == "fp8_e4m3" else (False,):
                problem = Problem(format_name, *sizes, layout, promoted)
                found = candidates(problem, device)
                assert found[0] == default(problem, device)
                assert len(found) == len(set(found))
                assert all(fits(each, problem, device) and each.stages >= 2 for each in found)
                assert all(fits(each, problem, device) for each in candidates(problem, device, wide=True))


def test_a_full_wave_beats_one_tile_too_many() -> None:
    """132 tiles on 132 units take a turn; one more column of tiles costs a second one."""
    tile = Tile(128, 256, 128, 8)
    full = Problem("bf16", 128 * 12, 256 * 11, 4096, "nt")
    over = full._replace(m=128 * 13)
    assert cycles(tile, over, HOPPER) == 2 * cycles(tile, full, HOPPER)
    assert count(128, 256, full) == HOPPER.units


def test_few_rows_get_small_tiles_so_that_every_unit_has_one() -> None:
    config = default(Problem("bf16", 16, 8192, 8192, "nt"), HOPPER)
    assert config.block_m == 64
    assert count(config.block_m, config.block_n, Problem("bf16", 16, 8192, 8192, "nt")) >= HOPPER.units * 0.9


def test_tiles_that_feed_on_less_are_preferred_where_waves_are_alike() -> None:
    ranked = sorted(tiles(square(16384), HOPPER), key=lambda tile: cycles(tile, square(16384), HOPPER))
    areas = [tile.m * tile.n for tile in ranked]
    assert areas[0] == max(areas)
    assert areas[-1] == min(areas)


def test_the_default_is_the_cheapest_by_the_model() -> None:
    for sizes in SHAPES:
        problem = Problem("bf16", *sizes, "nt")
        cheapest = min(tiles(problem, HOPPER), key=lambda tile: cycles(tile, problem, HOPPER))
        assert default(problem, HOPPER) == configured(cheapest, problem, HOPPER)


def test_groups_make_the_tiles_at_work_a_square() -> None:
    wide = configured(Tile(128, 256, 128, 8), square(8192), HOPPER)
    high = configured(Tile(256, 128, 128, 8), square(8192), HOPPER)
    assert wide.group > high.group
    rows = wide.group * 128
    columns = HOPPER.units / wide.group * 256
    assert math.log2(rows / columns) == pytest.approx(0, abs=1)


def test_small_programs_share_a_unit_and_large_ones_do_not() -> None:
    assert default(square(8192), HOPPER).resident == 1
    assert default(Problem("bf16", 1, 8192, 8192, "nt"), HOPPER).resident == 2
    for each in candidates(square(8192, "fp8_e4m3", promoted=True), HOPPER, wide=True):
        assert each.resident * shared_bytes(each, square(8192, "fp8_e4m3"), HOPPER) <= HOPPER.shared_bytes


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (Problem("bf16", 64, 64, 60, "nt"), "rows of A have 120 bytes, no multiple of 16"),
        (Problem("bf16", 60, 64, 64, "tn"), "rows of A have 120 bytes, no multiple of 16"),
        (Problem("int8", 64, 60, 64, "nn"), "rows of B have 60 bytes, no multiple of 16"),
        (Problem("fp8_e4m3", 64, 60, 64, "nt"), "rows of C have 120 bytes, no multiple of 16"),
        (Problem("fp8_e4m3", 64, 60, 64, "nn"), "rows of B have 60 bytes, no multiple of 16"),
        (Problem("tf32", 63, 60, 4, "nt"), ""),
    ],
)
def test_rows_that_a_descriptor_cannot_step_over_go_to_the_other_kernel(problem: Problem, why: str) -> None:
    assert problem.undescribed == why
    assert by_descriptors(problem, HOPPER) is (not why)
    assert not by_descriptors(problem, DEVICES["sm_80"])
    assert default(problem, HOPPER).flatten is (not why)


def test_a_label_says_what_differs_from_the_plain_kernel() -> None:
    config = default(square(8192), HOPPER)
    assert config.label == "128x256x64, 8 warps, 3 stages, group 16, flat"
    turned = config._replace(slices=2, flatten=False, resident=2)
    assert turned.label == "128x256x64, 8 warps, 3 stages, group 16, 2 slices, 2 a unit"
    labels = [each.label for each in candidates(square(8192), HOPPER, wide=True)]
    assert len(labels) == len(set(labels)), "what was tried is told apart by its label"


def test_families_share_what_their_first_member_does_in_a_cycle() -> None:
    assert Device("103", 1, 1).fma_per_cycle == Device("100", 1, 1).fma_per_cycle
    assert Device("121", 1, 1).fma_per_cycle == Device("120", 1, 1).fma_per_cycle
    assert Device("86", 1, 1).fma_per_cycle != Device("80", 1, 1).fma_per_cycle
    assert Device("75", 1, 1).fma_per_cycle is None
    assert Device("gfx1100", 1, 1).fma_per_cycle is None
