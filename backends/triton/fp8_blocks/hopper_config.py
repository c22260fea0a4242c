"""How the kernel for Hopper cuts a product, and the devices that it is written for."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from backends.triton.gemm.config import MOST_GROUP, SCALE_BYTES, SPARE_SHARED_BYTES
from backends.triton.gemm.device import Device
from backends.triton.gemm.problem import Problem
from backends.triton.gemm.ragged import MOST_ROWS

ROWS = 64  # of one of the two groups of warps
BLOCK = 128  # numbers along K, and columns of a part of a tile, that have one scale
ARCHITECTURE = "90"
OUTPUT_BYTES = 2
APART, TURNS, PAIRS = "apart", "turns", "pairs"


class HopperConfig(NamedTuple):
    """``stages`` blocks of K are on their way at once; ``registers`` are of a thread that multiplies.

    ``sums`` says what is multiplied while sums are added up; ``staged`` has scales of A come with their block: see ``hopper``.
    """

    stages: int
    block_n: int = BLOCK
    group: int = MOST_GROUP
    registers: int = 240
    sums: str = APART
    staged: bool = False

    @property
    def block_m(self) -> int:
        return 2 * ROWS

    @property
    def part(self) -> int:
        """Columns that are multiplied, and stored, at once."""
        return min(self.block_n, BLOCK)

    @property
    def tiles(self) -> str:
        return f"{self.block_m}x{self.block_n}x{BLOCK}"

    @property
    def facts(self) -> dict[str, Any]:
        """How a product is cut, for people and for whoever repeats it."""
        return {
            "language": "Gluon",
            "loads": "tensor descriptors, by a warp of its own",
            "tiles": self.tiles,
            "stages": self.stages,
            "group": self.group,
            "sums": self.sums,
            "scales": "staged with their block" if self.staged else "loaded by who multiplies",
            "registers_that_multiply": self.registers,
        }

    @property
    def label(self) -> str:
        """For people: ``128x256x128, 4 stages, group 16, turns, staged scales``."""
        sums = "" if self.sums == APART else f", {self.sums}"
        staged = ", staged scales" if self.staged else ""
        return f"{self.tiles}, {self.stages} stages, group {self.group}{sums}{staged}"


def reason(plain: Problem, device: Device, configs: Sequence[HopperConfig]) -> str | None:
    """Why the kernel does not take a product of these sizes, or a device; ``None`` where it may."""
    if device.architecture != ARCHITECTURE:
        return f"gluon is written for sm_{ARCHITECTURE}, the device here is {device.name}; triton is portable"
    if plain.undescribed:
        return f"gluon copies by tensor descriptors, and {plain.undescribed}; triton takes others"
    if plain.m > MOST_ROWS:
        return f"gluon takes up to {MOST_ROWS} rows of A, not {plain.m}; triton takes more"
    if not with_room(configs, device):
        return f"no configuration of gluon has room in {device.shared_bytes} bytes of shared memory"
    return None


def with_room(configs: Sequence[HopperConfig], device: Device) -> list[HopperConfig]:
    """Those that a device can hold, in their order."""
    return [config for config in configs if shared_bytes(config) <= device.shared_bytes]


def shared_bytes(config: HopperConfig) -> int:
    """Blocks of A and B on their way, perhaps with scales of A, and a part of C on its way out."""
    stage = (config.block_m + config.block_n) * BLOCK + (config.block_m * SCALE_BYTES if config.staged else 0)
    return config.stages * stage + config.block_m * config.part * OUTPUT_BYTES + SPARE_SHARED_BYTES
