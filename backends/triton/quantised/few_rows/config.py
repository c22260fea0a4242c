"""How a product of few rows is cut: a default by what each warp goes through, and its neighbours to try."""

from collections.abc import Iterator
from typing import NamedTuple

from backends.triton.gemm.device import Device
from backends.triton.quantised.few_rows.order import GROUP_K, TILE_ROWS
from backends.triton.quantised.problem import Problem

COLUMNS = 8  # rows of X that the narrow side of ``mma.m16n8k16`` has
MOST_ROWS = 8  # of X: with more, the other kernel was as fast on an H200
RESIDENT_WARPS = 16  # of a unit: 65536 registers, 128 for each of a warp's threads
START_STEPS = 4  # of 16 rows and a group: until a program's first words are there, and from its last until its sums are stored
SPLITS = (1, 2, 4)
MOST_CANDIDATES = 8


class Config(NamedTuple):
    """A program takes ``tiles`` tiles of 16 rows of W; ``warps`` and then ``split`` programs share its groups along K.

    A warp has ``ahead`` groups in registers or on their way.
    """

    tiles: int
    warps: int
    ahead: int
    split: int = 1

    @property
    def rows(self) -> int:
        return TILE_ROWS * self.tiles

    @property
    def label(self) -> str:
        """For people: ``32 rows, 8 warps along k, 2 groups each, split 1``."""
        return f"{self.rows} rows, {self.warps} warps along k, {self.ahead} groups each, split {self.split}"


# What has room in the registers of ``RESIDENT_WARPS``.  With two groups ahead, and those of X beside them, 32 rows by 8 warps
# were the fastest on an H200 for W of 8192x8192, and by 4 warps for 28672x8192.
CONFIGS = (Config(2, 8, 3), Config(1, 4, 4), Config(2, 4, 3), Config(1, 8, 4), Config(2, 8, 2), Config(2, 4, 2))


def reason(problem: Problem, device: Device) -> str | None:
    """Why the kernel does not take a product or a device; ``None`` where it does."""
    if problem.format != "w4a16":
        return f"weights are {problem.format}, and this kernel takes w4a16"
    if problem.m > MOST_ROWS:
        return f"X has {problem.m} rows, and this kernel takes up to {MOST_ROWS}"
    if device.is_amd:
        return f"weights reach the multiplier by the layout of NVIDIA's instruction, and this is {device.name}"
    return None


def candidates(problem: Problem, device: Device) -> list[Config]:
    """The one with the fewest steps first."""
    return sorted(_offered(problem), key=lambda config: steps(config, problem, device))[:MOST_CANDIDATES]


def columns(problem: Problem) -> int:
    """Of the sums: rows of X, in whole instructions."""
    return -(-problem.m // COLUMNS) * COLUMNS


def programs(config: Config, problem: Problem) -> int:
    """How many there are."""
    return -(-problem.n // config.rows) * config.split


def unfit(config: Config, problem: Problem) -> str | None:
    """Why a configuration cannot compute the product; ``None`` where it can."""
    turns = _turns(config, problem)
    if config.split > turns:
        return f"{config.label} has more parts than the {turns} turns of its warps over k={problem.k}"
    return None


def steps(config: Config, problem: Problem, device: Device) -> float:
    """Of 16 rows and a group that the busiest warp goes through one after the other, with what starts and ends cost."""
    at_once = device.units * (RESIDENT_WARPS // config.warps)
    waves = programs(config, problem) / at_once
    own = -(-_turns(config, problem) // config.split) * config.tiles
    ends = -(-programs(config, problem) // at_once) + (config.split > 1)
    return own * max(1.0, waves) + START_STEPS * ends


def _turns(config: Config, problem: Problem) -> int:
    return -(-(problem.k // GROUP_K) // config.warps)


def _offered(problem: Problem) -> Iterator[Config]:
    for config in CONFIGS:
        for split in SPLITS:
            each = config._replace(split=split)
            if unfit(each, problem) is None:
                yield each
