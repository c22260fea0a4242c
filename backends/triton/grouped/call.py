"""The kernels with what they are given: the list of tiles, then the product."""

from typing import Any, NamedTuple

import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from backends.triton.gemm.call import Call, options_of
from backends.triton.gemm.config import Config, by_descriptors
from backends.triton.gemm.device import Device
from backends.triton.gemm.ragged import within_groups
from backends.triton.grouped import kernels
from backends.triton.grouped.config import most_row_tiles
from backends.triton.grouped.problem import BLOCK, Problem

STEP = 16  # row tiles that one program of the schedule lists
SCHEDULE_WARPS = 4


class Matrices(NamedTuple):
    """The tensors of one input set; scales are float32, ``None`` where there are none.

    Scales of blocks of A come first along K (``prepack.by_blocks``).
    """

    a: Any
    b: Any
    c: Any
    ends: Any
    a_scale: Any = None
    b_scale: Any = None


def room_of_list(problem: Problem, block_m: int) -> int:
    """Numbers of int32 that a list of row tiles can take."""
    return 1 + 2 * most_row_tiles(block_m, problem)


def calls(problem: Problem, config: Config, device: Device, given: Matrices, tile_list: Any) -> list[Call]:
    """What one launch calls, in order; ``tile_list`` is overwritten by each, so that launches of one stream can share it."""
    return [schedule_call(problem, config.block_m, given, tile_list), _product(problem, config, device, given, tile_list)]


def schedule_call(problem: Problem, block_m: int, given: Matrices, tile_list: Any) -> Call:
    """What writes the list of tiles of ``block_m`` rows."""
    constants = {"BLOCK_M": block_m, "GROUPS": triton.next_power_of_2(problem.groups), "STEP": STEP}
    grid = (-(-most_row_tiles(block_m, problem) // STEP), 1, 1)
    return Call(kernels.schedule, grid, (given.ends, tile_list, problem.groups), constants, {"num_warps": SCHEDULE_WARPS})


def _product(problem: Problem, config: Config, device: Device, given: Matrices, tile_list: Any) -> Call:
    a, b, c, ends, a_scale, b_scale = given
    described = by_descriptors(problem.plain, device)
    scales = (a, b) if a_scale is None else (a_scale, b_scale)  # read only where the format has scales
    scale_rows = a_scale.shape[-1] if problem.scales == BLOCK else 0
    matrices: tuple[Any, ...] = (a, b, c)
    if described:
        blocks = ([config.block_m, config.block_k], [config.block_n, config.block_k])
        a_desc, b_desc = (TensorDescriptor.from_tensor(*each) for each in zip((a, b), blocks, strict=True))
        matrices = (a_desc, b_desc, within_groups(c, [config.block_m, config.block_n // config.slices]))
    own = {"SLICES": config.slices, "FLATTEN": config.flatten} if described else {"WHOLE_K": problem.k % config.block_k == 0}
    constants = {
        "BLOCK_M": config.block_m,
        "BLOCK_N": config.block_n,
        "BLOCK_K": config.block_k,
        "GROUP": config.group,
        **own,
        "PROMOTED": problem.promoted,
        "SCALES": problem.scales,
    }
    kernel = kernels.grouped_by_descriptors if described else kernels.grouped_by_pointers
    arguments = (*matrices, *scales, ends, tile_list, problem.n, problem.k, scale_rows)
    grid = grid_of(problem, config.block_m, config.block_n, device.units * config.resident if described else None)
    return Call(kernel, grid, arguments, constants, options_of(config))


def grid_of(problem: Problem, block_m: int, block_n: int, at_once: int | None) -> tuple[int, int, int]:
    """As many programs as there can be tiles; no more than ``at_once`` where they go through tiles."""
    most = most_row_tiles(block_m, problem) * -(-problem.n // block_n)
    return most if at_once is None else min(most, at_once), 1, 1
