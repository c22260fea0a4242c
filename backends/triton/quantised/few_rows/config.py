"""How a product of few rows is cut: a default by what each warp goes through, and its neighbours to try."""

from collections.abc import Iterator
from typing import NamedTuple

from backends.triton.gemm.device import Device
from backends.triton.quantised.few_rows.order import GROUP_K, STRIP, TILE_ROWS
from backends.triton.quantised.problem import Problem

COLUMNS = 8  # rows of X that the narrow side of ``mma.m16n8k16`` has
MOST_ROWS = 8  # of X: with more, the other kernel was as fast on an H200
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
    may have ``registers``.  ``in_fp16`` is how numbers are multiplied; else in bf16.
    """

    tiles: int
    warps: int
    ahead: int
    registers: int
    x_ahead: int = 2
    in_fp16: bool = False
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
        return f"{self.rows} rows, {warps}, split {self.split}{', in fp16' if self.in_fp16 else ''}"


# Registers are the most with which as many programs fit into a unit.  On an H200 the first was the fastest for one row of X and
# W of 8192x8192 and 8192x28672, the second for 28672x8192, the third for eight rows; from the sixth on none was timed.
CONFIGS = (
    Config(1, 4, 4, 112),
    Config(1, 4, 4, 96, x_ahead=1),
    Config(2, 8, 2, 128),
    Config(1, 4, 4, 128),
    Config(2, 4, 2, 128),
    Config(1, 4, 4, 112, in_fp16=True),
    Config(1, 4, 4, 96, x_ahead=1, in_fp16=True),
    Config(2, 8, 2, 128, x_ahead=1, in_fp16=True),
    Config(4, 8, 2, 255),
    Config(2, 8, 4, 255),
)
FEWEST_SETS = 4  # of columns that share what X takes to be in fp16


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


def sets(problem: Problem) -> int:
    """Groups of K whose parts of X stand beside each other in the columns."""
    return columns(problem) // next(rows for rows in (1, 2, 4, 8, 16) if rows >= problem.m)


def programs(config: Config, problem: Problem) -> int:
    """How many there are."""
    return -(-problem.n // config.rows) * config.split


def unfit(config: Config, problem: Problem) -> str | None:
    """Why a configuration cannot compute the product; ``None`` where it can."""
    if problem.zero_point and config.tiles > 1:
        return f"{config.label} has no room for the zero points of its rows"
    if config.in_fp16 and sets(problem) < FEWEST_SETS:
        return f"{config.label} would convert X of m={problem.m} for fewer than {FEWEST_SETS} groups of K at once"
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
