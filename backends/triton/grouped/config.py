"""How a grouped product is cut into tiles: by the model of plain products, over the tiles that all groups have together."""

import math
from collections.abc import Sequence

from backends.triton.gemm import config as plain
from backends.triton.gemm.config import Config, Tile, by_descriptors
from backends.triton.gemm.device import Device
from backends.triton.grouped.problem import BLOCK, SCALED_BLOCK, Problem

MOST_SCALED = SCALED_BLOCK  # rows and columns of a tile
MOST_CONVERTED = 64  # where fp8 becomes fp16, which takes registers for both: 128 spill on gfx942


def candidates(problem: Problem, device: Device) -> list[Config]:
    """The cheapest by the model first, then other tiles, then what else can be turned on each."""
    ranked = sorted(tiles(problem, device), key=lambda tile: cycles(tile, problem, device))
    most = plain.WORTH_TRYING * cycles(ranked[0], problem, device) if ranked else 0.0
    bases = [_configured(tile, problem, device) for tile in ranked if cycles(tile, problem, device) <= most]
    varied = [config for base in bases for config in plain.neighbours(base, problem.plain, device)]
    sound = [each for each in varied if each.stages >= plain.FEWEST_STAGES and fits(each, problem, device)]
    return list(dict.fromkeys([*bases, *(_settled(each, problem, device) for each in sound)]))


def tiles(problem: Problem, device: Device) -> Sequence[Tile]:
    """Those of plain products that have room; with scales of blocks, one scale of B for each tile and block of K."""
    offered = plain.tiles(problem.plain, device)
    if problem.scales == BLOCK:
        most = MOST_SCALED if device.has_fp8 else MOST_CONVERTED
        offered = [tile._replace(k_bytes=SCALED_BLOCK) for tile in offered if max(tile.m, tile.n) <= most]
    return [tile for tile in offered if fits(_configured(tile, problem, device), problem, device)]


def cycles(tile: Tile, problem: Problem, device: Device) -> float:
    """What the busiest unit takes: as of a plain product, over as many tiles as the groups have."""
    one = plain.cycles(tile, problem.plain, device) / math.ceil(_count_plain(tile, problem) / device.units)
    return one * math.ceil(count(tile.m, tile.n, problem) / device.units)


def count(block_m: int, block_n: int, problem: Problem) -> int:
    """Tiles of C: no tile has rows of two groups."""
    return row_tiles(block_m, problem) * -(-problem.n // block_n)


def row_tiles(block_m: int, problem: Problem) -> int:
    """Tiles that the rows of all groups make."""
    return sum(-(-rows // block_m) for rows in problem.rows)


def most_row_tiles(block_m: int, problem: Problem) -> int:
    """However the rows are spread over the groups: what is known before a router has chosen."""
    return problem.height // block_m + problem.groups


def fits(config: Config, problem: Problem, device: Device) -> bool:
    """Whether a program has the shared memory that it takes."""
    return shared_bytes(config, problem, device) <= device.shared_bytes


def shared_bytes(config: Config, problem: Problem, device: Device) -> int:
    """As of a plain product; scales of blocks of A are on their way with the blocks."""
    in_flight = config.stages * config.block_m * plain.SCALE_BYTES if problem.scales == BLOCK else 0
    return plain.shared_bytes(config, problem.plain, device) + in_flight


def _count_plain(tile: Tile, problem: Problem) -> int:
    return plain.count(tile.m, tile.n, problem.plain)


def _configured(tile: Tile, problem: Problem, device: Device) -> Config:
    """By plain products', with stages given up until scales of blocks have room too."""
    config = plain.configured(tile, problem.plain, device)
    while config.stages > plain.FEWEST_STAGES and not fits(config, problem, device):
        config = config._replace(stages=config.stages - 1)
    return _settled(config, problem, device)


def _settled(config: Config, problem: Problem, device: Device) -> Config:
    """With as many programs to a unit as have room there; programs that take one tile come and go by themselves."""
    described = by_descriptors(problem.plain, device)
    room = device.shared_bytes // shared_bytes(config, problem, device) if described else 1
    return config._replace(resident=max(1, min(plain.MOST_RESIDENT, room)))
