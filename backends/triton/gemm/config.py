"""How a product is cut into tiles: a default by a small model of the device, and neighbours of it to try.

The model ranks, it predicts no time.  A tile costs the cycles that its multiply-adds take, and those in which its operands
and its output pass between the cache and the unit; a device takes as many tiles in turn as its busiest unit has.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from backends.triton.gemm.device import Device
from backends.triton.gemm.problem import Problem

FEED_BYTES_PER_CYCLE = 64  # between the last-level cache and a unit, NVIDIA's and AMD's alike
SPARE_SHARED_BYTES = 1024  # barriers, alignment, what a change of layout takes
SCALE_BYTES = 4
ACCUMULATOR_REGISTERS = 128  # of a thread's 255; the rest hold operands and addresses
ROWS_OF_A_WARP = 16  # fewer, and warps share rows: a tile's columns then change hands before they are stored
PROMOTED_TERMS = 128
PROMOTED_SUMS = {False: 2, True: 3}  # held at once, by whether the device is AMD's: there the addition takes a third
FEWEST_STAGES = 2  # one would load nothing ahead
WANTED_STAGES = 3
MOST_STAGES = 4
MOST_GROUP = 16
MOST_RESIDENT = 2
# Shapes this far from the model's best are still worth a trial: it knows nothing of latencies.
WORTH_TRYING = 1.3


class Tile(NamedTuple):
    """The block of C that a program computes at once; ``k_bytes`` of K lie in one block of an operand's row."""

    m: int
    n: int
    k_bytes: int
    warps: int


class Config(NamedTuple):
    """Constants of a compiled kernel.

    ``stages`` blocks of K are on their way at once; ``group`` rows of tiles share columns of B; ``slices`` parts a tile is
    stored in; ``flatten`` loads a tile's first blocks while the last is stored; ``resident`` programs share a unit.
    """

    block_m: int
    block_n: int
    block_k: int
    warps: int
    stages: int
    group: int
    slices: int = 1
    flatten: bool = True
    resident: int = 1

    @property
    def tiles(self) -> str:
        return f"{self.block_m}x{self.block_n}x{self.block_k}"

    @property
    def label(self) -> str:
        """For people: ``128x256x64, 8 warps, 3 stages, group 16, 2 slices, flat``."""
        loop = ["flat"] if self.flatten else []
        resident = [f"{self.resident} a unit"] if self.resident > 1 else []
        parts = [self.tiles, f"{self.warps} warps", f"{self.stages} stages", f"group {self.group}"]
        return ", ".join([*parts, *([f"{self.slices} slices"] if self.slices > 1 else []), *loop, *resident])


# Wider than high first: where two are equal by the model, B's rows are the longer.
DESCRIBED_TILES = (
    Tile(128, 256, 128, 8),
    Tile(256, 128, 128, 8),
    Tile(128, 128, 128, 8),
    Tile(64, 256, 128, 4),
    Tile(64, 128, 128, 4),
    Tile(128, 64, 128, 4),
    Tile(64, 64, 128, 4),
    Tile(64, 32, 128, 4),
)
NVIDIA_TILES = (  # operands of mma.sync pass through registers: half the block of K for the largest
    Tile(128, 256, 64, 8),
    Tile(256, 128, 64, 8),
    Tile(128, 128, 128, 8),
    Tile(64, 128, 128, 4),
    Tile(64, 64, 128, 4),
)
AMD_TILES = (
    Tile(256, 128, 128, 8),
    Tile(128, 256, 128, 8),
    Tile(128, 128, 128, 8),
    Tile(64, 128, 128, 4),
    Tile(64, 64, 128, 4),
)
GFX90A_TILES = (Tile(256, 128, 64, 8), Tile(128, 256, 64, 8), *AMD_TILES[2:])
CONVERTED_TILES = (Tile(128, 128, 64, 8), Tile(64, 64, 64, 4))  # fp8 that becomes fp16 takes registers for both
UNALIGNED_TILES = (Tile(64, 64, 64, 8),)  # loads of single numbers take an address each


def by_descriptors(problem: Problem, device: Device) -> bool:
    """Whether the kernel with tensor descriptors takes this product; else it is the one with pointers."""
    return device.has_descriptors and not problem.undescribed


def default(problem: Problem, device: Device) -> Config:
    """The configuration that costs the fewest cycles by the model."""
    return configured(min(tiles(problem, device), key=lambda tile: cycles(tile, problem, device)), problem, device)


def candidates(problem: Problem, device: Device, wide: bool = False) -> list[Config]:
    """The default first, then other tiles, then what else can be turned on each; ``wide`` has every combination."""
    ranked = sorted(tiles(problem, device), key=lambda tile: cycles(tile, problem, device))
    most = WORTH_TRYING * cycles(ranked[0], problem, device)
    bases = [configured(tile, problem, device) for tile in ranked if cycles(tile, problem, device) <= most]
    vary = combinations if wide else neighbours
    varied = [config for base in bases for config in vary(base, problem, device)]
    sound = [each for each in varied if each.stages >= FEWEST_STAGES and fits(each, problem, device)]
    return list(dict.fromkeys([*bases, *(_settled(each, problem, device) for each in sound)]))


def tiles(problem: Problem, device: Device) -> Sequence[Tile]:
    """The tiles whose accumulators and blocks have room on the device."""
    roomy = [tile for tile in _offered(problem, device) if _held(tile.m, tile.n, tile.warps, problem, device)]
    return [tile for tile in roomy if fits(configured(tile, problem, device), problem, device)]


def _held(m: int, n: int, warps: int, problem: Problem, device: Device) -> bool:
    """Whether the accumulators of a tile have room in its threads' registers."""
    threads = warps * (64 if device.is_amd else 32)
    sums = PROMOTED_SUMS[device.is_amd] if problem.promoted else 1
    return m * n * sums <= ACCUMULATOR_REGISTERS * threads


def _offered(problem: Problem, device: Device) -> Sequence[Tile]:
    if by_descriptors(problem, device):
        return DESCRIBED_TILES
    if problem.undescribed:
        return UNALIGNED_TILES
    if not device.is_amd:
        return NVIDIA_TILES
    if problem.format == "fp8_e4m3" and not device.has_fp8:
        return CONVERTED_TILES
    return GFX90A_TILES if device.architecture == "gfx90a" else AMD_TILES


def cycles(tile: Tile, problem: Problem, device: Device) -> float:
    """What the busiest unit takes, by the model."""
    assert device.fma_per_cycle is not None, "a device that reason() refuses has no configuration"
    numbers = problem.numbers
    fma_per_cycle = device.fma_per_cycle * 2 / numbers.operand_bytes
    fed_bytes = (tile.m + tile.n) * problem.k * numbers.operand_bytes + tile.m * tile.n * numbers.output_bytes
    each = tile.m * tile.n * problem.k / fma_per_cycle + fed_bytes / FEED_BYTES_PER_CYCLE
    return math.ceil(count(tile.m, tile.n, problem) / device.units) * each


def count(block_m: int, block_n: int, problem: Problem) -> int:
    """Tiles of C."""
    return -(-problem.m // block_m) * -(-problem.n // block_n)


def configured(tile: Tile, problem: Problem, device: Device) -> Config:
    """A tile with the fewest slices that leave room for three stages, as many stages as then fit, and a square group.

    Programs at work at once cover ``group`` rows of tiles: the blocks that they share are fewest where that is a square.
    """
    block_k = tile.k_bytes // problem.numbers.operand_bytes
    if problem.promoted:
        block_k = min(block_k, PROMOTED_TERMS)
    plain = Config(tile.m, tile.n, block_k, tile.warps, stages=1, group=1)
    described = by_descriptors(problem, device)
    choices = [
        plain._replace(stages=stages, slices=slices, flatten=described)
        for stages in (WANTED_STAGES, FEWEST_STAGES)
        for slices in ((1, 2, 4) if described else (1,))
    ]
    config = next((each for each in choices if fits(each, problem, device)), choices[-1])
    while config.stages < MOST_STAGES and fits(config._replace(stages=config.stages + 1), problem, device):
        config = config._replace(stages=config.stages + 1)
    rows = math.sqrt(device.units * tile.n / tile.m)
    group = min(MOST_GROUP, 2 ** max(0, round(math.log2(rows))))
    return _settled(config._replace(group=group), problem, device)


def _settled(config: Config, problem: Problem, device: Device) -> Config:
    """With as many programs to a unit as have room there; programs that take one tile come and go by themselves."""
    room = device.shared_bytes // shared_bytes(config, problem, device) if by_descriptors(problem, device) else 1
    return config._replace(resident=max(1, min(MOST_RESIDENT, room)))


def fits(config: Config, problem: Problem, device: Device) -> bool:
    """Whether a program has the shared memory that it takes."""
    return shared_bytes(config, problem, device) <= device.shared_bytes


def shared_bytes(config: Config, problem: Problem, device: Device) -> int:
    """Shared memory that a program takes: blocks on their way, and a slice of C on its way out.

    AMD's pipeline keeps one stage in registers, and neither pointer kernel stores through shared memory.
    """
    numbers = problem.numbers
    block_bytes = (config.block_m + config.block_n) * config.block_k * numbers.operand_bytes
    if not by_descriptors(problem, device):
        return block_bytes * (config.stages - 1 if device.is_amd else config.stages)
    slice_bytes = config.block_m * config.block_n // config.slices * numbers.output_bytes
    scale_bytes = SCALE_BYTES * max(config.block_m, config.block_n) if problem.scales == "row" else 0
    tensor_memory_bytes = _tensor_memory_bytes(config, problem, device)
    return config.stages * block_bytes + slice_bytes + scale_bytes + tensor_memory_bytes + SPARE_SHARED_BYTES


def _tensor_memory_bytes(config: Config, problem: Problem, device: Device) -> int:
    """What sm_100 takes besides for 32-bit numbers: its multiplier wants K innermost, and sums leave it as whole tiles."""
    if not device.architecture.startswith("10") or problem.format != "tf32":
        return 0
    across = config.block_m * problem.a_transposed + config.block_n * (not problem.b_transposed)
    whole = config.block_m * config.block_n * (config.slices - 1) // config.slices if config.flatten else 0
    return (2 * across * config.block_k + whole) * problem.numbers.operand_bytes


def neighbours(base: Config, problem: Problem, device: Device) -> Iterator[Config]:
    """One thing changed at a time."""
    yield base._replace(stages=base.stages - 1)
    if by_descriptors(problem, device):
        yield base._replace(flatten=not base.flatten)
        yield base._replace(slices=base.slices * 2 if base.slices < 4 else 1)
        yield base._replace(slices=min(4, base.slices * 2), stages=base.stages + 1)
    yield base._replace(group=base.group // 2 if base.group > 1 else 8)


def combinations(base: Config, problem: Problem, device: Device) -> Iterator[Config]:
    """Everything that can be turned, in every combination that makes sense."""
    described = by_descriptors(problem, device)
    held = [each for each in (4, 8) if _held(base.block_m, base.block_n, each, problem, device)]
    several_warps = [each for each in held if each * ROWS_OF_A_WARP <= base.block_m]
    several_stages = range(FEWEST_STAGES, MOST_STAGES + 2)
    several_slices, loops = ((1, 2, 4), (True, False)) if described else ((1,), (False,))
    for warps, stages, slices, flatten, group in product(several_warps, several_stages, several_slices, loops, (4, 8, 16)):
        yield base._replace(warps=warps, stages=stages, slices=slices, flatten=flatten, group=group)
