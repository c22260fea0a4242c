"""The kernel for Hopper with what it is given."""

from typing import Any, NamedTuple

from backends.triton.fp8_blocks.hopper_config import BLOCK, ROWS, HopperConfig
from backends.triton.gemm.call import Call

WARPS = 4  # of a group; Triton adds the others of a specialised kernel


class Tensors(NamedTuple):
    """A (rows x k), B (rows of all Bs x k), C (rows x n); scales in float32, of A with blocks of K first, of B as stored."""

    a: Any
    b: Any
    c: Any
    a_scale: Any
    b_scale: Any


class Groups(NamedTuple):
    """Where each group's rows end, and the list of tiles that a launch before has written."""

    ends: Any
    tile_list: Any


def product(config: HopperConfig, given: Tensors, units: int, row_tiles: int, groups: Groups | None = None) -> Call:
    """One product, or with ``groups`` one of each; ``row_tiles`` is how many tiles of rows there can be."""
    from backends.triton.fp8_blocks.described import described, described_within_groups
    from backends.triton.fp8_blocks.hopper import blocks_on_hopper

    (m, k), n = given.a.shape, given.c.shape[1]
    matrices = (
        described(given.a, [ROWS, BLOCK]),
        described(given.b, [config.part, BLOCK]),
        described_within_groups(given.c, [ROWS, config.part]),
    )
    ends, tile_list = groups or (given.a_scale, given.a_scale)  # read only where there are groups
    a_scale = described(given.a_scale, [1, ROWS]) if config.staged else given.a_scale
    arguments = (*matrices, a_scale, given.b_scale, ends, tile_list, m, n, k, given.a_scale.shape[-1])
    constants = {
        "BLOCK_N": config.block_n,
        "GROUP": config.group,
        "STAGES": config.stages,
        "REGISTERS": config.registers,
        "SUMS": config.sums,
        "DENSE": groups is None,
        "STAGED": config.staged,
    }
    grid = (min(units, row_tiles * -(-n // config.block_n)), 1, 1)
    return Call(blocks_on_hopper, grid, arguments, constants, {"num_warps": WARPS})
