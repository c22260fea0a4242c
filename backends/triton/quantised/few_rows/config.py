"""How a product of few rows is cut: a default by what each warp goes through, and its neighbours to try."""

from collections.abc import Iterator
from typing import NamedTuple

from backends.triton.gemm.device import Device
from backends.triton.quantised.few_rows.order import GROUP_K, STRIP, TILE_ROWS
from backends.triton.quantised.problem import Problem

COLUMNS = 8  # rows of X that the narrow side of ``mma.m16n8k16`` has
MOST_ROWS = COLUMNS  # of X: it takes twice as many, and has not been timed beside the other kernel with them
REGISTERS = 65536  # of a unit
MOST_REGISTERS = 255  # of a thread
WIDE_SUMS = 32  # columns of all tiles: with more, 168 registers are too few
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

    A warp has ``sets`` groups in registers and as many on their way; a thread may have ``registers``.
    """

    tiles: int
    warps: int
    sets: int
    registers: int
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
        """For people: ``16 rows, 4 warps along k, 2 groups each, 128 registers, split 1``."""
        warps = f"{self.warps} warps along k, {self.sets} groups each, {self.registers} registers"
        return f"{self.rows} rows, {warps}, split {self.split}"


# Registers are the most with which as many programs fit into a unit.  Of int4 nothing is spilled with them, of uint4 up to 24
# bytes of a thread by four tiles.  Neither their order nor the steps above were measured with this form of the kernel yet.
CONFIGS = (
    Config(1, 4, 2, 128),
    Config(1, 4, 4, 168),
    Config(1, 4, 1, 80),
    Config(2, 4, 1, 128),
    Config(2, 4, 1, 168),
    Config(4, 4, 1, 168),
    Config(4, 4, 1, MOST_REGISTERS),
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


def columns(problem: Problem) -> int:
    """Of the sums: rows of X, in whole instructions, or fewer rows of several groups."""
    return -(-problem.m // COLUMNS) * COLUMNS


def programs(config: Config, problem: Problem) -> int:
    """How many there are."""
    return -(-problem.n // config.rows) * config.split


def unfit(config: Config, problem: Problem) -> str | None:
    """Why a configuration cannot compute the product; ``None`` where it can."""
    if problem.m * config.sets > columns(problem):
        return f"{config.label} has {columns(problem)} columns, too few for m={problem.m} rows of each group"
    if config.tiles * columns(problem) > WIDE_SUMS and config.registers < MOST_REGISTERS:
        return f"{config.label} would spill the sums of {columns(problem)} columns; {MOST_REGISTERS} registers hold them"
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
