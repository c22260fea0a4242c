"""Configurations of products with quantised operands: what the model chooses, and that everything offered can be had."""

import pytest

from backends.triton.gemm.device import Device
from backends.triton.quantised import scaled_config, weight_config
from backends.triton.quantised.problem import STEP, WEIGHT_BITS, Problem
from backends.triton.quantised.weight_config import Config, candidates, cycles, offered, shared_bytes, tiles_on, unfit
from tests.backends.triton.compiled import DEVICES

HOPPER = DEVICES["sm_90"]
SHAPES = [(1, 8192, 8192), (16, 28672, 8192), (64, 8192, 8192), (4096, 4096, 4096), (333, 222, 384), (1, 1, 128)]
FEW, MANY = Problem("w4a16", 16, 8192, 8192), Problem("w4a16", 4096, 4096, 4096)


@pytest.mark.parametrize("sizes", SHAPES, ids=str)
@pytest.mark.parametrize("device", DEVICES.values(), ids=lambda device: device.name)
def test_everything_offered_fits(device: Device, sizes: tuple[int, int, int]) -> None:
    for format_name in WEIGHT_BITS:
        problem = Problem(format_name, *sizes)
        found = candidates(problem, device)
        assert found, "some configuration takes any size"
        assert not [why for each in found if (why := unfit(each, problem, device))]
        labels = [each.label for each in found]
        assert len(set(labels)) == len(labels), "what was tried is told apart by its label"


@pytest.mark.parametrize(
    "device", [each for each in DEVICES.values() if each.has_fp8 or each.is_amd], ids=lambda each: each.name
)
def test_fp8_in_blocks_has_a_configuration_everywhere(device: Device) -> None:
    for sizes in SHAPES:
        problem = Problem("fp8_e4m3", *sizes)
        found = scaled_config.candidates(problem, device)
        assert found
        assert not [why for each in found if (why := scaled_config.unfit(each, problem, device))]


def test_the_default_is_the_cheapest_by_the_model() -> None:
    for sizes in SHAPES:
        problem = Problem("w4a16", *sizes)
        cheapest = min(cycles(each, problem, HOPPER) for each in offered(problem, HOPPER))
        assert cycles(candidates(problem, HOPPER)[0], problem, HOPPER) == cheapest


@pytest.mark.parametrize("k", [8192, 28672])
def test_the_default_for_sixteen_rows_is_what_was_the_fastest_on_an_h200(k: int) -> None:
    """Turns of four blocks: 16.2 us where turns of two took 18.0, and 43.8 where they took 51.0."""
    assert candidates(FEW._replace(k=k), HOPPER)[0] == Config(64, 16, 4, 4, 3, split=2)


def test_few_rows_put_every_unit_to_work_with_enough_bytes_on_their_way() -> None:
    for problem in (FEW, FEW._replace(m=1), FEW._replace(k=28672)):
        config = candidates(problem, HOPPER)[0]
        at_work = tiles_on(config, problem) * config.parts
        assert at_work >= 0.9 * HOPPER.units
        resident = min(-(-at_work // HOPPER.units), HOPPER.shared_bytes // shared_bytes(config, problem, HOPPER))
        in_flight_bytes = resident * (config.stages - 1) * config.block_n * config.blocks * weight_config.WORD_BYTES
        assert in_flight_bytes >= weight_config.IN_FLIGHT_BYTES


def test_many_rows_get_large_tiles_that_nobody_shares() -> None:
    config = candidates(MANY, HOPPER)[0]
    assert config.block_n * config.block_m == 128 * 256
    assert not any(each.split for each in candidates(MANY, HOPPER))


def test_blocks_through_descriptors_begin_where_descriptors_write() -> None:
    """An odd block of 64 bytes would be written between two of their units: a Hopper unit's context is lost by it."""
    for sizes in SHAPES:
        for zero_point in (False, True):
            found = candidates(Problem("w4a16", *sizes, zero_point=zero_point), HOPPER)
            assert found
            assert not [each for each in found if each.block_n * each.blocks * 2 % 128]


def test_no_program_shares_a_tile_on_amd() -> None:
    for name in ("gfx90a", "gfx942", "gfx950"):
        assert not any(each.split for each in candidates(FEW, DEVICES[name]))
        assert "on NVIDIA only" in str(unfit(Config(64, 16, 1, 4, 2, 2), FEW, DEVICES[name]))


@pytest.mark.parametrize(
    ("config", "k", "words"),
    [
        (Config(64, 16, 2, 4, 4), 384, "takes 256 numbers along K at a time, and k=384 is no multiple"),
        (Config(64, 16, 2, 4, 4, 9), 2048, "has more parts than the 8 turns of its loop over k=2048"),
        (Config(64, 16, 2, 4, 4, 8), 2048, None),
        (Config(32, 16, 2, 4, 4), 2048, None),
        (Config(32, 16, 1, 4, 4), 2048, "scales of 64 bytes a turn, no multiple of the 128 of a descriptor"),
        (Config(64, 16, 2, 4, 1), 2048, "would load nothing ahead"),
        (Config(256, 256, 1, 8, 2), 2048, "no room for its sums in registers"),
        (Config(128, 256, 1, 8, 3, 2), 2048, "no room for its sums in registers"),
        (Config(128, 256, 1, 8, 4), 2048, "bytes of shared memory, of 232448"),
    ],
)
def test_what_cannot_be_had_is_told_by_name(config: Config, k: int, words: str | None) -> None:
    told = unfit(config, FEW._replace(k=k), HOPPER)
    assert (told is None) if words is None else (told is not None and words in told and config.label in told)


def test_turns_become_shorter_where_they_would_not_be_whole() -> None:
    for format_name in WEIGHT_BITS:
        step = STEP[format_name]
        assert {each.blocks for each in candidates(Problem(format_name, 16, 8192, 63 * step), HOPPER)} == {1}


def test_weights_are_counted_in_their_own_bits() -> None:
    config = Config(64, 16, 1, 4, 4)
    four, eight = Problem("w4a16", 16, 8192, 8192), Problem("w8a16", 16, 8192, 8192)
    assert cycles(config, eight, HOPPER) > cycles(config, four, HOPPER)


def test_labels_say_what_differs() -> None:
    assert Config(128, 256, 1, 8, 3, group=16).label == "128x256, 1 blocks, 8 warps, 3 stages, group 16"
    assert Config(64, 16, 2, 4, 4, 3).label == "64x16, 2 blocks, 4 warps, 4 stages, split 3"
    assert scaled_config.Config(128, 128, 8, 3, 8, 128).label == "128x128, 8 warps, 3 stages, group 8, 128 registers"
