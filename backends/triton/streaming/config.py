"""How a streamed product is cut into programs.

Weights come as fast as enough bytes are on their way to every unit.  One row is multiplied in registers: a warp's lanes lie
along K, with 16 bytes each, so that weights and X meet where they are loaded; on NVIDIA also by programs that stay, for which
copies into shared memory go on from one tile into the next.  More rows go to the multiplier, weights through a pipeline of
copies.  Programs that share a tile of K are there where tiles are too few for all units.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from backends.triton.gemm.device import Device
from backends.triton.streaming.problem import ROTATED, Problem

REGISTERS, RESIDENT, MULTIPLIER = "registers", "resident", "multiplier"
LANE_BYTES = 16
NARROWEST = {False: 8, True: 16}  # columns of an instruction, on NVIDIA and on AMD
MOST_SPLITS = 16
FEWEST_BLOCKS = 2  # of K for each of several programs
RESERVED_BYTES = 1024
REGISTERS_OF_A_UNIT, MOST_REGISTERS, REGISTER_STEP = 65_536, 255, 8  # NVIDIA's, from Volta on


class Config(NamedTuple):
    """``rows`` of W by ``block_k`` at a time in ``warps``; ``ahead`` blocks are under way; ``split`` programs share a tile.

    Of the kernel whose programs stay there are ``a_unit``.  A thread has ``most_registers``, or what the compiler gives it
    where they are 0.
    """

    kernel: str
    rows: int
    block_k: int
    warps: int
    ahead: int
    split: int = 1
    a_unit: int = 0
    most_registers: int = 0

    @property
    def label(self) -> str:
        shared = f", {self.split} a tile" if self.split > 1 else f", {self.a_unit} a unit" if self.a_unit else ""
        threads = f" of up to {self.most_registers} registers" if self.most_registers else ""
        return f"{self.kernel} {self.rows}x{self.block_k}, {self.warps} warps{threads}, {self.ahead} ahead{shared}"


class Shape(NamedTuple):
    """A configuration before its split: ``resident`` programs a unit are to be there at once."""

    kernel: str
    rows: int
    block_k: int
    warps: int
    ahead: int
    resident: int


def default(problem: Problem, device: Device) -> Config:
    """What is taken where nothing was tried."""
    return candidates(problem, device)[0]


def candidates(problem: Problem, device: Device) -> Sequence[Config]:
    """What is worth trying, the likeliest first."""
    shapes = (*_in_registers(problem, device), *_that_stay(problem, device), *_by_multiplier(problem, device))
    found = [split_for(_fitting(each, problem), problem, device) for each in shapes]
    found = [each for each in found if shared_bytes(each, problem, device) <= device.shared_bytes]
    return list(dict.fromkeys(found))


def columns(problem: Problem, config: Config, device: Device) -> int:
    """Rows of X as the kernel pads them."""
    if config.kernel != MULTIPLIER:
        return 1
    return max(NARROWEST[device.is_amd], 1 << (problem.m - 1).bit_length())


def tiles(problem: Problem, config: Config) -> int:
    """Of W's rows."""
    if problem.end == ROTATED:
        return problem.n // config.rows
    return -(-(problem.n // 2) // (config.rows // 2)) if problem.pairs else -(-problem.n // config.rows)


def blocks(problem: Problem, config: Config) -> int:
    """Of K."""
    return -(-problem.k // config.block_k)


def programs(problem: Problem, config: Config, device: Device) -> int:
    """Of one launch; of those that stay each has at least one block."""
    if config.kernel == RESIDENT:
        return min(device.units * config.a_unit, tiles(problem, config) * blocks(problem, config))
    return tiles(problem, config) * config.split


def sharing(problem: Problem, config: Config, device: Device) -> int:
    """Most programs that stay and have a part of one tile, rounded up to a power of two."""
    of_tile = blocks(problem, config)
    of_program = tiles(problem, config) * of_tile // programs(problem, config, device)  # at least
    beside_the_first = -(-(of_tile - 1) // of_program)
    return 1 << beside_the_first.bit_length()


def parts(problem: Problem, config: Config, device: Device) -> int:
    """How many parts of tiles programs leave for each other."""
    if config.kernel != RESIDENT:
        return tiles(problem, config) * config.split if config.split > 1 else 0
    of_tile, count = blocks(problem, config), programs(problem, config, device)
    ends = [each * tiles(problem, config) * of_tile // count for each in range(count + 1)]
    return sum(
        first > tile * of_tile or last < (tile + 1) * of_tile
        for first, last in pairwise(ends)
        for tile in {first // of_tile, (last - 1) // of_tile}
    )


def shared_bytes(config: Config, problem: Problem, device: Device) -> int:
    """At most this much shared memory: what is under way, and sums that are exchanged."""
    exchanged = 4 * config.rows * columns(problem, config, device)
    if config.kernel == REGISTERS:
        return exchanged + 4 * config.rows * config.warps + RESERVED_BYTES
    if config.kernel == RESIDENT:
        block = (config.rows + 1) * config.block_k * problem.number_bytes
        return config.ahead * block + exchanged + 4 * config.rows * config.warps + RESERVED_BYTES
    block = config.block_k * problem.number_bytes
    width = columns(problem, config, device)
    return max((config.rows + width) * block * max(1, config.ahead), exchanged) + RESERVED_BYTES


def split_for(shape: Shape, problem: Problem, device: Device) -> Config:
    """As many programs a tile as give every unit those that are to be there, while each has blocks enough of K."""
    whole = Config(*shape[:5], most_registers=_most_registers(shape, device))
    if shape.kernel == RESIDENT:
        return whole._replace(a_unit=shape.resident)
    wanted = -(-device.units * shape.resident // tiles(problem, whole))
    most = max(1, min(MOST_SPLITS, blocks(problem, whole) // FEWEST_BLOCKS))
    return whole._replace(split=max(1, min(wanted, most)))


def _most_registers(shape: Shape, device: Device) -> int:
    """Of a thread whose loads are all to be under way in registers: as many as the programs that are to be there leave it.

    Not told so, NVIDIA's compiler has loads wait for earlier ones to free theirs.
    """
    if shape.kernel != REGISTERS or device.is_amd:
        return 0
    left = REGISTERS_OF_A_UNIT // (32 * shape.warps * shape.resident)
    return min(MOST_REGISTERS, left // REGISTER_STEP * REGISTER_STEP)


def _in_registers(problem: Problem, device: Device) -> list[Shape]:
    if problem.m > 1:
        return []
    of_warp = (64 if device.is_amd else 32) * LANE_BYTES // problem.number_bytes
    shapes = [(8, 4, 1, 3), (4, 4, 2, 4), (8, 8, 1, 1), (4, 8, 1, 3), (8, 2, 1, 6), (8, 4, 2, 3), (4, 4, 1, 6), (4, 2, 4, 8)]
    return [Shape(REGISTERS, rows, of_warp * warps, warps, ahead, resident) for rows, warps, ahead, resident in shapes]


def _that_stay(problem: Problem, device: Device) -> list[Shape]:
    """As many at once as a unit's shared memory holds with what they have under way."""
    if problem.m > 1 or device.is_amd:
        return []
    of_warp = 32 * LANE_BYTES // problem.number_bytes
    cuts = [(8, 4, 5, 2), (8, 4, 4, 3), (4, 4, 6, 4), (8, 8, 4, 1)]
    shapes = [Shape(RESIDENT, rows, of_warp * warps, warps, ahead, resident) for rows, warps, ahead, resident in cuts]
    return [
        each
        for each in (_fitting(shape, problem) for shape in shapes)
        if each.resident * shared_bytes(split_for(each, problem, device), problem, device) <= device.shared_bytes
    ]


def _by_multiplier(problem: Problem, device: Device) -> list[Shape]:
    """Rows of W grow with those of X, which every program reads again: from the cache, but not for nothing."""
    many = problem.m > 16
    # fp32 is multiplied in registers, where a wide block of X spills by Triton 3.6.
    in_registers = problem.format == "fp32"
    if device.is_amd:
        shapes = (
            [(64, 64, 4, 2, 2), (128, 64, 8, 2, 1)] if many else [(32, 128, 2, 2, 4), (64, 64, 4, 2, 2), (16, 256, 2, 2, 4)]
        )
    elif many:
        shapes = [(64, 64, 4, 5, 2), (128, 64, 8, 5, 1), (64, 128, 8, 4, 1), (64, 64, 4, 4, 3), (32, 64, 4, 6, 3)]
        shapes += [(64, 32, 8, 5, 2), (32, 32, 4, 6, 3)] if in_registers else []
    else:
        shapes = [(32, 128, 4, 5, 3), (64, 64, 4, 6, 2), (64, 128, 4, 4, 2), (32, 256, 4, 3, 3), (16, 256, 2, 4, 5)]
        shapes += [(32, 64, 4, 6, 3)] if in_registers else []
    if problem.m == 1:
        shapes = shapes[:2]
    return [Shape(MULTIPLIER, *each) for each in shapes]


def _fitting(shape: Shape, problem: Problem) -> Shape:
    """No more rows than a head has, or than there are; no more of K, and of warps along it, than is summed over."""
    most = problem.head_dim if problem.end == ROTATED else 1 << (problem.n - 1).bit_length()
    widest = 1 << (problem.k - 1).bit_length()
    if shape.kernel == MULTIPLIER:
        return shape._replace(rows=max(16, min(shape.rows, most)), block_k=max(16, min(shape.block_k, widest)))
    fewer = shape._replace(rows=max(2, min(shape.rows, most)))
    while fewer.warps > 1 and fewer.block_k > widest:
        fewer = fewer._replace(warps=fewer.warps // 2, block_k=fewer.block_k // 2)
    return fewer
