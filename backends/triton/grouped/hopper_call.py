"""Grouped products by the kernel of ``backends.triton.fp8_blocks`` for Hopper: the devices and products that it takes."""

from typing import Any

from backends.triton.fp8_blocks import hopper_config
from backends.triton.fp8_blocks.hopper_call import Groups, Tensors, product
from backends.triton.fp8_blocks.hopper_config import HopperConfig, with_room
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device
from backends.triton.grouped.call import Matrices, schedule_call
from backends.triton.grouped.config import most_row_tiles
from backends.triton.grouped.problem import BLOCK, Problem

CONFIGS = (HopperConfig(6), HopperConfig(5), HopperConfig(4))


def reason(problem: Problem, device: Device) -> str | None:
    """Why the kernel does not take a product or a device; ``None`` where it does."""
    if problem.scales != BLOCK:
        return "gluon takes fp8_e4m3 with scales of blocks; triton takes others"
    return hopper_config.reason(problem.plain, device, CONFIGS)


def candidates(device: Device) -> list[HopperConfig]:
    """Those that have room, the most stages first."""
    return with_room(CONFIGS, device)


def calls(problem: Problem, config: HopperConfig, device: Device, given: Matrices, tile_list: Any) -> list[Call]:
    """What one launch calls, in order: see ``call.calls``."""
    a, b, c, ends, a_scale, b_scale = given
    schedule = schedule_call(problem, config.block_m, given, tile_list)
    rows = most_row_tiles(config.block_m, problem)
    return [schedule, product(config, Tensors(a, b, c, a_scale, b_scale), device.units, rows, Groups(ends, tile_list))]
