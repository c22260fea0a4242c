"""The kernel for Hopper with what it is given, and the devices and products that it takes."""

from typing import Any, NamedTuple

from backends.triton.gemm.call import Call
from backends.triton.gemm.config import MOST_GROUP, SPARE_SHARED_BYTES
from backends.triton.gemm.device import Device
from backends.triton.grouped.call import Matrices, grid_of, schedule_call
from backends.triton.grouped.problem import BLOCK, SCALED_BLOCK, Problem

ROWS = 64  # of one of the two groups of warps
ARCHITECTURE = "90"
OUTPUT_BYTES = 2


class HopperConfig(NamedTuple):
    """``stages`` blocks of K are on their way at once; ``registers`` are of a thread that multiplies."""

    stages: int
    block_n: int = SCALED_BLOCK
    group: int = MOST_GROUP
    registers: int = 240

    @property
    def block_m(self) -> int:
        return 2 * ROWS

    @property
    def label(self) -> str:
        """For people: ``128x128x128, 6 stages, group 16``."""
        return f"{self.block_m}x{self.block_n}x{SCALED_BLOCK}, {self.stages} stages, group {self.group}"


CONFIGS = (HopperConfig(6), HopperConfig(5), HopperConfig(4))


def reason(problem: Problem, device: Device) -> str | None:
    """Why the kernel does not take a product or a device; ``None`` where it does."""
    if problem.scales != BLOCK:
        return "gluon takes fp8_e4m3 with scales of blocks; triton takes others"
    if device.architecture != ARCHITECTURE:
        return f"gluon is written for sm_90, the device here is {device.name}; triton is portable"
    if problem.plain.undescribed:
        return f"gluon copies by tensor descriptors, and {problem.plain.undescribed}; triton takes others"
    if not candidates(device):
        return f"no configuration of gluon has room in {device.shared_bytes} bytes of shared memory"
    return None


def candidates(device: Device) -> list[HopperConfig]:
    """Those that have room, the most stages first."""
    return [config for config in CONFIGS if shared_bytes(config) <= device.shared_bytes]


def shared_bytes(config: HopperConfig) -> int:
    """Blocks of A and B on their way, and C on its way out."""
    stage = (config.block_m + config.block_n) * SCALED_BLOCK
    return config.stages * stage + config.block_m * config.block_n * OUTPUT_BYTES + SPARE_SHARED_BYTES


def calls(problem: Problem, config: HopperConfig, device: Device, given: Matrices, tile_list: Any) -> list[Call]:
    """What one launch calls, in order: see ``call.calls``."""
    from backends.triton.grouped.hopper import blocks_on_hopper, described, described_within_groups

    a, b, c, ends, a_scale, b_scale = given
    a_desc, b_desc = described(a, [ROWS, SCALED_BLOCK]), described(b, [config.block_n, SCALED_BLOCK])
    matrices = (a_desc, b_desc, described_within_groups(c, [ROWS, config.block_n]))
    arguments = (*matrices, a_scale, b_scale, ends, tile_list, problem.n, problem.k, a_scale.shape[-1])
    constants = {
        "BLOCK_N": config.block_n,
        "GROUP": config.group,
        "STAGES": config.stages,
        "REGISTERS": config.registers,
    }
    grid = grid_of(problem, config.block_m, config.block_n, device.units)
    product = Call(blocks_on_hopper, grid, arguments, constants, {"num_warps": 4})
    return [schedule_call(problem, config.block_m, given, tile_list), product]
