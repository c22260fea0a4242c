"""How a product of few rows is cut: a default by what each warp goes through, and its neighbours to try."""

from collections.abc import Iterator
from typing import NamedTuple

from backends.triton.gemm.device import Device
from backends.triton.quantised.few_rows.order import COLUMNS, GROUP_K, STRIP, TILE_ROWS
from backends.triton.quantised.problem import Problem

MOST_ROWS = COLUMNS  # of X: sixteen, by four tiles, took 18.4 us on an H200 where the other kernel took 16.2
REGISTERS = 65536  # of a unit
ALLOCATED = 256  # registers that a warp's are rounded up to
START_STEPS = (
    2.0  # of 16 rows and a group: until a program's first words are there, and from its last until its sums are stored
)
WARP_STEPS = 0.5  # that each warp adds to those
SPLIT_ENDS = 3  # that a sum over parts costs more
X_STEPS = 0.05  # that a group of K takes for each row of X
SPLITS = (1, 2)
MOST_CANDIDATES = 12


class Config(NamedTuple):
    """A program takes ``tiles`` tiles of 16 rows of W; ``warps`` and then ``split`` programs share its groups along K.

    A warp has ``ahead`` groups in registers or on their way, and ``x_ahead`` times what a product's columns hold of X; a thread
    may have ``registers``.
    """

    tiles: int
    warps: int
    ahead: int
    registers: int
    x_ahead: int = 2
    split: int = 1

    @property
    def rows(self) -> int:
        return TILE_ROWS * self.tiles

    @property
    def resident(self) -> int:
        """Programs that a unit holds at once."""
        of_warp = -(-32 * self.registers // ALLOCATED) * ALLOCATED
        return REGISTERS // (of_warp * self.warps)

    @property
    def label(self) -> str:
        """For people: ``16 rows, 4 warps along k, 4 groups each, 112 registers, split 1``."""
        warps = f"{self.warps} warps along k, {self.ahead} groups each, {self.registers} registers"
        return f"{self.rows} rows, {warps}, split {self.split}"


# Registers are the most with which as many programs fit into a unit.  On an H200 the first was the fastest for one row of X and
# W of 8192x8192 and 8192x28672, the second for 28672x8192, the third for eight rows.
CONFIGS = (
    Config(1, 4, 4, 112),
    Config(1, 4, 4, 96, x_ahead=1),
    Config(2, 8, 2, 128),
    Config(1, 4, 4, 128),
    Config(2, 4, 2, 128),
)


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


def sets(problem: Problem) -> int:
    """Groups of K whose parts of X stand beside each other in the columns."""
    return next(sets for sets in (8, 4, 2, 1) if sets * problem.m <= COLUMNS)


def programs(config: Config, problem: Problem) -> int:
    """How many there are."""
    return -(-problem.n // config.rows) * config.split


def unfit(config: Config, problem: Problem) -> str | None:
    """Why a configuration cannot compute the product; ``None`` where it can."""
    if problem.zero_point and config.tiles > 1:
        return f"{config.label} has no room for the zero points of its rows"
    most = rounds(config, problem)
    if config.split > most:
        return f"{config.label} has more parts than the {most} rounds of its warps over k={problem.k}"
    return None


def steps(config: Config, problem: Problem, device: Device) -> float:
    """Of 16 rows and a group that the busiest warp goes through one after the other, with what starts and ends cost."""
    at_once = device.units * config.resident
    waves = programs(config, problem) / at_once
    of_group = config.tiles + X_STEPS * problem.m
    own = -(-rounds(config, problem) // config.split) * STRIP * of_group
    ends = -(-programs(config, problem) // at_once) + SPLIT_ENDS * (config.split > 1)
    return own * max(1.0, waves) + (START_STEPS + WARP_STEPS * config.warps) * ends


def rounds(config: Config, problem: Problem) -> int:
    """How often all warps take a strip of K each."""
    return -(-problem.k // (GROUP_K * STRIP * config.warps))


def _offered(problem: Problem) -> Iterator[Config]:
    for config in CONFIGS:
        for split in SPLITS:
            each = config._replace(split=split)
            if unfit(each, problem) is None:
                yield each
