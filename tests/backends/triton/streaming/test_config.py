"""What is refused, and how what is taken is cut."""

import pytest

from backends.triton.gemm.dependent import has_dependent_launches
from backends.triton.gemm.device import Device
from backends.triton.streaming.call import constants_of
from backends.triton.streaming.config import (
    FEWEST_BLOCKS,
    MOST_SPLITS,
    MULTIPLIER,
    REGISTERS,
    RESIDENT,
    Config,
    blocks,
    candidates,
    columns,
    default,
    parts,
    programs,
    shared_bytes,
    sharing,
    tiles,
)
from backends.triton.streaming.kernel import streamed
from backends.triton.streaming.problem import PLAIN, ROTATED, Problem, reason
from tests.backends.triton.compiled import DEVICES
from tests.backends.triton.streaming.llama import problem

H200 = DEVICES["sm_90"]
KINDS = ("qkv", "o", "gate_up", "down", "lm_head")
EIGHT_B = problem("o", 1)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (EIGHT_B._replace(format="fp8_e4m3"), "streamed products are in fp32, bf16, fp16, not in fp8_e4m3"),
        (EIGHT_B._replace(m=65), "up to 64 rows (sequences), not 65; take the library"),
        (EIGHT_B._replace(k=4100), "multiples of 16 numbers, not 4100"),
        (EIGHT_B._replace(n=2**31), "sizes up to"),
        (problem("qkv", 1)._replace(head_dim=96), "heads of 96 columns; a power of two from 16 on"),
        (problem("qkv", 1)._replace(head_dim=8), "heads of 8 columns"),
    ],
)
def test_a_refusal_names_what_was_given_and_the_limit(given: Problem, named: str) -> None:
    assert named in str(reason(given, H200))


def test_a_device_that_no_configuration_is_made_for_is_refused_by_name() -> None:
    assert str(reason(EIGHT_B, Device("75", 40, 65_536))).startswith("no configuration of this kernel is made for sm_75")


@pytest.mark.parametrize("m", [1, 2, 8, 16, 17, 33, 64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("device", DEVICES.values(), ids=lambda device: device.name)
def test_every_candidate_has_room_and_covers_all_rows_and_all_of_k(device: Device, kind: str, m: int) -> None:
    p = problem(kind, m)
    assert reason(p, device) is None
    found = candidates(p, device)
    assert len(set(found)) == len(found) >= 1
    for each in found:
        assert shared_bytes(each, p, device) <= device.shared_bytes
        assert tiles(p, each) * each.rows >= p.n
        assert (tiles(p, each) - 1) * each.rows < p.n
        assert blocks(p, each) * each.block_k >= p.k
        assert 1 <= each.split <= MOST_SPLITS
        assert each.split == 1 or blocks(p, each) >= FEWEST_BLOCKS * each.split
        assert columns(p, each, device) >= m or each.kernel != MULTIPLIER
        if p.end == ROTATED:
            assert p.head_dim % each.rows == 0


def test_one_row_is_multiplied_in_registers_and_more_are_not() -> None:
    assert default(EIGHT_B, H200).kernel == REGISTERS
    assert {each.kernel for each in candidates(EIGHT_B, H200)} == {REGISTERS, RESIDENT, MULTIPLIER}
    assert {each.kernel for each in candidates(EIGHT_B, DEVICES["gfx942"])} == {REGISTERS, MULTIPLIER}
    assert {each.kernel for each in candidates(problem("o", 2), H200)} == {MULTIPLIER}


@pytest.mark.parametrize("device", [H200, DEVICES["gfx942"]], ids=lambda device: device.name)
def test_lanes_lie_along_k_with_16_bytes_each(device: Device) -> None:
    """So that weights and X meet in the registers in which they are loaded."""
    for format_name, number_bytes in (("bf16", 2), ("fp32", 4)):
        for each in candidates(problem("down", 1, format_name), device):
            if each.kernel == REGISTERS:
                assert each.block_k == each.warps * (64 if device.is_amd else 32) * 16 // number_bytes


def test_programs_that_stay_fit_a_unit_together() -> None:
    for kind in KINDS:
        for device in DEVICES.values():
            p = problem(kind, 1)
            for each in candidates(p, device):
                if each.kernel == RESIDENT:
                    assert each.a_unit * shared_bytes(each, p, device) <= device.shared_bytes


@pytest.mark.parametrize("units", [1, 3, 8, 132])
@pytest.mark.parametrize(("n", "k"), [(8, 32), (44, 80), (4096, 4096), (4096, 14336), (24, 4064)])
def test_no_more_programs_that_stay_share_a_tile_than_are_reckoned(n: int, k: int, units: int) -> None:
    """By the shares themselves, as the kernel draws them."""
    p, device = Problem("bf16", 1, n, k), H200._replace(units=units)
    config = Config(RESIDENT, 8, 32, 1, 3, a_unit=3)
    count, of_tile = programs(p, config, device), blocks(p, config)
    items = tiles(p, config) * of_tile
    shares = [(each * items // count, (each + 1) * items // count) for each in range(count)]
    assert all(first < last for first, last in shares)
    owners = [
        {number for number, (first, last) in enumerate(shares) if first < end and last > begin}
        for begin, end in ((tile * of_tile, (tile + 1) * of_tile) for tile in range(tiles(p, config)))
    ]
    assert max(map(len, owners)) <= sharing(p, config, device)
    assert parts(p, config, device) == sum(len(each) for each in owners if len(each) > 1)


def test_few_tiles_are_shared_and_many_are_not() -> None:
    """4096 rows by 64 are 64 tiles for 132 units; 128256 rows are enough."""
    few, many = ([each.split for each in candidates(problem(kind, 64), H200)] for kind in ("down", "lm_head"))
    assert min(few) > 1
    assert set(many) == {1}


def test_a_narrow_product_is_cut_no_wider_than_it_is() -> None:
    p = Problem("fp16", 1, 40, 96, PLAIN)
    for each in candidates(p, H200):
        assert each.rows <= 64
        assert each.block_k <= 256


@pytest.mark.parametrize("m", [2, 16, 17, 64])
def test_fp32_has_a_narrower_block_to_fall_back_on_and_tries_the_others_first(m: int) -> None:
    """It is multiplied in registers; which of the wide blocks spill is the compiler's affair."""
    narrow = [each.block_k for each in candidates(problem("qkv", m, "fp32"), H200)]
    others = [each.block_k for each in candidates(problem("qkv", m), H200)]
    assert narrow[0] == others[0]
    assert narrow[-1] == min(narrow) == min(others) // (2 if m > 16 else 1)
    assert narrow.count(32) == (2 if m > 16 else 0)


def test_all_of_k_in_whole_blocks_needs_no_mask() -> None:
    p = problem("o", 8)
    (config, *_) = candidates(p, H200)
    assert constants_of(p, config, H200, dependent=False)["WHOLE_K"]
    assert not constants_of(p._replace(k=4112), config, H200, dependent=False)["WHOLE_K"]


@pytest.mark.parametrize("kind", KINDS)
def test_constants_stand_in_the_order_of_the_kernels_parameters(kind: str) -> None:
    """A loaded kernel is given them by their places."""
    constants = constants_of(problem(kind, 8), default(problem(kind, 8), H200), H200, dependent=True)
    assert list(constants) == streamed.arg_names[-len(constants) :]


def test_launches_that_depend_came_with_sm_90() -> None:
    having = {name for name, device in DEVICES.items() if has_dependent_launches(device)}
    assert having == {"sm_90", "sm_100", "sm_120"}
