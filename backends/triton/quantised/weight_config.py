"""How a product with quantised weights is cut: a default by a small model of the device, and its neighbours to try.

The model ranks, it predicts no time.  Few rows of X leave the time to the weights, which come as fast as enough bytes are on
their way to every unit: programs that share the K of a tile are there for that.  Many rows leave it to the multiplier, and to
the instructions that make bf16 of weights, once for every tile.
"""

from collections.abc import Iterator
from typing import NamedTuple

from backends.triton.gemm.config import FEED_BYTES_PER_CYCLE, ROWS_OF_A_WARP, WORTH_TRYING
from backends.triton.gemm.device import Device
from backends.triton.quantised.problem import STEP, WEIGHT_BITS, Problem

WORD_BYTES = 64  # of a row and a block of K: 32 words of 16 bits
IN_FLIGHT_BYTES = 32 << 10  # to a unit: an H200 has 36 GB a second for each; the latency of 0.9 us is assumed
MEMORY_BYTES_PER_CYCLE = 20  # of device memory for each unit: H200 has 20, A100 13, B200 29, MI300X 8
CONVERTED_PER_CYCLE = 64  # numbers: two instructions each, by 128 lanes
CONVERTED_BY_A_WARP = 8  # of them: half of what its scheduler issues, the rest waits for the multiplier
START_CYCLES = 1500  # until a program's first block is there, and from its last sum until it is stored
TURN_CYCLES = 450  # that a turn of the loop adds: 0.23 and 0.25 us on an H200, 16 rows of X, two blocks to a turn against four
SCALE_BYTES = {"w4a16": 2, "mxfp4a16": 4, "w8a16": 0}  # of a row and a block of K; a zero point has as many
DESCRIBED_BYTES = 128  # a tensor descriptor writes to addresses of whole units of these: so many has each block on its way
SPARE_SHARED_BYTES = 1024  # barriers and alignment
ACCUMULATOR_REGISTERS = 128  # of a thread's 255; the rest hold converted weights and addresses
WARP_REGISTERS = 64  # of them where X passes through registers too
RESIDENT_WARPS = 16  # with 128 registers a thread a unit has room for so many
SPLIT_BELOW = 2  # tiles a unit: with more, every unit is at work anyway
SPLITS = (0, 2, 3, 4, 6, 8, 12, 16)
MOST_CANDIDATES = 16


class Config(NamedTuple):
    """Constants of a compiled kernel: a tile is ``block_n`` rows of W by ``block_m`` of X.

    A turn of the loop takes ``blocks`` blocks of K; ``split`` programs share the K of a tile, or, where it is 0, every tile has
    one program and ``group`` tiles along N share rows of X in the cache.
    """

    block_n: int
    block_m: int
    blocks: int
    warps: int
    stages: int
    split: int = 0
    group: int = 8

    @property
    def label(self) -> str:
        """For people: ``128x256, 1 blocks, 8 warps, 3 stages, group 8``."""
        shared = f"split {self.split}" if self.split else f"group {self.group}"
        return f"{self.block_n}x{self.block_m}, {self.blocks} blocks, {self.warps} warps, {self.stages} stages, {shared}"

    @property
    def parts(self) -> int:
        """Programs to a tile."""
        return max(1, self.split)


class Tile(NamedTuple):
    """``n`` rows of W by ``m`` of X; a turn of the loop takes ``k`` numbers of each."""

    n: int
    m: int
    k: int
    warps: int
    stages: int


# Chosen by what the compiler makes of them for sm_90; their order there is not measured yet.
WARPGROUP_TILES = (
    Tile(64, 16, 256, 4, 4),
    Tile(128, 16, 256, 4, 4),
    Tile(128, 16, 256, 8, 4),
    Tile(64, 16, 512, 4, 3),
    Tile(64, 16, 128, 4, 6),
    Tile(32, 16, 512, 4, 4),
    Tile(64, 8, 256, 4, 4),
    Tile(32, 8, 512, 4, 4),
    Tile(64, 64, 256, 4, 3),
    Tile(128, 64, 128, 4, 4),
    Tile(64, 64, 128, 4, 4),
    Tile(64, 256, 128, 4, 2),
    # Not (128, 128, 128, 4, 3): its int4 at 4096^3 was 0.0123 of the norm away on an H200, Triton 3.6; the others under 0.01.
    Tile(128, 128, 128, 8, 3),
    Tile(256, 128, 128, 8, 3),
    Tile(128, 256, 128, 8, 3),
)
WARP_TILES = (
    Tile(64, 16, 128, 4, 4),
    Tile(64, 16, 256, 4, 3),
    Tile(64, 64, 128, 4, 3),
    Tile(64, 128, 128, 8, 2),
    Tile(128, 64, 128, 8, 3),
    Tile(128, 128, 128, 8, 2),
)
AMD_TILES = (Tile(64, 16, 128, 4, 2), Tile(64, 64, 128, 4, 2), Tile(64, 128, 128, 8, 2), Tile(128, 64, 128, 8, 2))


def candidates(problem: Problem, device: Device) -> list[Config]:
    """The default first, then what the model has near it, then one thing changed at a time; empty where nothing has room."""
    ranked = sorted(dict.fromkeys(offered(problem, device)), key=lambda config: cycles(config, problem, device))
    if not ranked:
        return []
    most = WORTH_TRYING * cycles(ranked[0], problem, device)
    near = [config for config in ranked if cycles(config, problem, device) <= most][:MOST_CANDIDATES]
    varied = [each for config in near[:2] for each in neighbours(config)]
    return list(dict.fromkeys([*near, *(each for each in varied if not unfit(each, problem, device))]))


def neighbours(config: Config) -> Iterator[Config]:
    """One thing changed at a time."""
    yield config._replace(stages=config.stages + 1)
    yield config._replace(stages=config.stages - 1)
    if not config.split:
        yield config._replace(group=config.group * 2)


def offered(problem: Problem, device: Device) -> Iterator[Config]:
    """Every tile with every split that can be had."""
    tiles = WARPGROUP_TILES if device.multiplies_by_warpgroups else AMD_TILES if device.is_amd else WARP_TILES
    for tile in tiles:
        few = -(-problem.n // tile.n) * -(-problem.m // tile.m) < SPLIT_BELOW * device.units
        for split in SPLITS if few else (0,):
            config = Config(tile.n, tile.m, _whole_blocks(tile, problem), tile.warps, tile.stages, split)
            if not unfit(config, problem, device):
                yield config


def tiles_on(config: Config, problem: Problem) -> int:
    """How many tiles C has."""
    return -(-problem.n // config.block_n) * -(-problem.m // config.block_m)


def _whole_blocks(tile: Tile, problem: Problem) -> int:
    """Blocks of K for each turn of the loop: a tile's, or fewer where its turns are not whole."""
    blocks = tile.k // STEP[problem.format]
    while problem.k % (blocks * STEP[problem.format]):
        blocks //= 2
    return blocks


def unfit(config: Config, problem: Problem, device: Device) -> str | None:
    """Why a configuration cannot compute the product, with what it can; ``None`` where it can."""
    turn_k = config.blocks * STEP[problem.format]
    turns, rest = divmod(problem.k, turn_k)
    if rest:
        return f"{config.label} takes {turn_k} numbers along K at a time, and k={problem.k} is no multiple"
    if config.split > turns:
        return f"{config.label} has more parts than the {turns} turns of its loop over k={problem.k}"
    if config.split > 1 and device.is_amd:
        return f"{config.label}: programs share a tile on NVIDIA only; that parts are seen is not proven on {device.name}"
    if config.stages < 2:
        return f"{config.label} would load nothing ahead"
    narrowest = config.block_n * config.blocks * SCALE_BYTES[problem.format]
    if device.has_descriptors and narrowest % DESCRIBED_BYTES:
        return f"{config.label} has scales of {narrowest} bytes a turn, no multiple of the {DESCRIBED_BYTES} of a descriptor"
    threads = config.warps * (64 if device.is_amd else 32)
    most = ACCUMULATOR_REGISTERS if device.multiplies_by_warpgroups or device.is_amd else WARP_REGISTERS
    if config.split > 1:
        most //= 2  # addresses of parts take more than those of C alone
    if config.block_n * config.block_m > most * threads:
        return f"{config.label} has no room for its sums in registers"
    needed = shared_bytes(config, problem, device)
    if needed > device.shared_bytes:
        return f"{config.label} takes {needed} bytes of shared memory, of {device.shared_bytes}"
    return None


def shared_bytes(config: Config, problem: Problem, device: Device) -> int:
    """Shared memory that a program takes: blocks on their way, and weights on their way from one order to another.

    Multipliers take weights from registers, but for Blackwell's, which takes them from shared memory, and AMD's, whose order in
    registers is another.
    """
    turn_k = config.blocks * STEP[problem.format]
    block_bytes = WORD_BYTES + SCALE_BYTES[problem.format] * (1 + problem.zero_point)
    stage = config.block_n * config.blocks * block_bytes + config.block_m * turn_k * 2
    passes = device.is_amd or device.architecture.startswith("10")
    wide = config.block_n * turn_k * 2 if passes else 0
    stages = config.stages - 1 if device.is_amd else config.stages
    return stages * stage + wide + SPARE_SHARED_BYTES


def cycles(config: Config, problem: Problem, device: Device) -> float:
    """What the busiest unit takes, by the model."""
    assert device.fma_per_cycle is not None, "a device that reason() refuses has no configuration"
    n, m = config.block_n, config.block_m
    busiest = -(-tiles_on(config, problem) * config.parts // device.units)
    turn_k = config.blocks * STEP[problem.format]
    turns = -(-problem.k // turn_k // config.parts)
    k = turns * turn_k
    resident = max(1, min(device.shared_bytes // shared_bytes(config, problem, device), RESIDENT_WARPS // config.warps))
    in_flight_bytes = min(resident, busiest) * (config.stages - 1) * n * config.blocks * WORD_BYTES
    word_bytes = busiest * n * k * WEIGHT_BITS[problem.format] / 8
    memory = word_bytes / -(-problem.m // m) / MEMORY_BYTES_PER_CYCLE / min(1.0, in_flight_bytes / IN_FLIGHT_BYTES)
    fed = (word_bytes + busiest * m * k * 2) / FEED_BYTES_PER_CYCLE
    apart = min(config.warps, max(1, n // ROWS_OF_A_WARP))  # more warps than have rows of their own convert the same again
    converted = min(CONVERTED_PER_CYCLE * apart / config.warps, CONVERTED_BY_A_WARP * apart * min(resident, busiest))
    multiplied = busiest * n * k * (m / device.fma_per_cycle + 1 / converted)
    parts = busiest * 2 * 4 * n * m / FEED_BYTES_PER_CYCLE + START_CYCLES if config.split > 1 else 0.0
    waves = -(-busiest // resident)
    return max(memory, fed, multiplied) + waves * (turns * TURN_CYCLES + START_CYCLES) + parts
