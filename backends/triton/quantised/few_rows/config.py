"""How a product of few rows is cut: a default by what each warp goes through, and its neighbours to try."""

from collections.abc import Iterator
from typing import NamedTuple

from backends.triton.gemm.device import Device
from backends.triton.quantised.few_rows.order import GROUP_K, STRIP, TILE_ROWS
from backends.triton.quantised.problem import Problem
from backends.triton.quantised.weight_config import MEMORY_BYTES_PER_CYCLE

COLUMNS = 8  # rows of X that the narrow side of ``mma.m16n8k16`` has
MOST_ROWS = 2 * COLUMNS  # of X: two instructions side by side
REGISTERS = 65536  # of a unit
MOST_REGISTERS = 255  # of a thread
MOST_COLUMNS = {80: 8, 128: 16, 168: 32, MOST_REGISTERS: 64}  # of all tiles, whose sums so many registers have room for
ALLOCATED = 256  # registers that a warp's are rounded up to
SCHEDULERS = 4  # of a unit
# Instructions of a warp, as ptxas has them for sm_90: of a phase, of a tile and a group in it, and with 16 columns.
PHASE_INSTRUCTIONS = 75
TILE_INSTRUCTIONS = 72
WIDE_INSTRUCTIONS = 18
# Of these, the defaults of 14 products on an H200 (1 to 16 rows of X) are the fastest of what is offered or within 3 %.
PHASE_CYCLES = 900  # that a phase takes at least: its loads follow the wait for those before
SPLIT_CYCLES = 1500  # until parts are added up
WARP_CYCLES = 100  # that each warp of a program adds, whose sums are added up
NEARLY_THE_LARGER = 8  # exponent of the norm of two times that overlap
BYTES_PER_WEIGHT = 0.5 + 2 / GROUP_K
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


# Registers are the most with which as many programs fit into a unit.  Each was among the three fastest for some product on an
# H200; of int4 nothing is spilled with them.
CONFIGS = (
    Config(1, 2, 4, 168),
    Config(1, 2, 4, MOST_REGISTERS),
    Config(1, 4, 4, 168),
    Config(2, 1, 4, MOST_REGISTERS),
    Config(2, 2, 4, MOST_REGISTERS),
    Config(2, 4, 4, MOST_REGISTERS),
    Config(1, 4, 2, 128),
    Config(1, 8, 2, 128),
    Config(2, 1, 2, MOST_REGISTERS),
    Config(2, 4, 2, 168),
    Config(1, 8, 1, 80),
    Config(2, 8, 1, 128),
    Config(2, 4, 1, 168),
    Config(2, 2, 1, 168),
    Config(4, 8, 1, MOST_REGISTERS),
    Config(4, 4, 1, MOST_REGISTERS),
    Config(4, 2, 1, MOST_REGISTERS),
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
    """The one with the fewest cycles first."""
    return sorted(_offered(problem), key=lambda config: cycles(config, problem, device))[:MOST_CANDIDATES]


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
    if config.tiles * columns(problem) > MOST_COLUMNS[config.registers]:
        return f"{config.label} would spill the sums of {columns(problem)} columns; more registers hold them"
    most = rounds(config, problem)
    if config.split > most:
        return f"{config.label} has more parts than the {most} rounds of its warps over k={problem.k}"
    return None


def cycles(config: Config, problem: Problem, device: Device) -> float:
    """What the busiest unit takes, without what all configurations take; it ranks, it predicts no time."""
    programs_of_unit = -(-programs(config, problem) // device.units)
    waves = max(1.0, programs(config, problem) / (device.units * config.resident))
    warps = -(-min(config.resident, programs_of_unit) * config.warps // SCHEDULERS)
    phases = -(-rounds(config, problem) // config.split) * STRIP // config.sets
    worked = waves * phases * max(PHASE_CYCLES, warps * instructions(config, columns(problem)))
    loaded = problem.n * problem.k * BYTES_PER_WEIGHT / device.units / MEMORY_BYTES_PER_CYCLE
    both = (loaded**NEARLY_THE_LARGER + worked**NEARLY_THE_LARGER) ** (1 / NEARLY_THE_LARGER)
    return float(both) + SPLIT_CYCLES * (config.split > 1) + WARP_CYCLES * config.warps


def instructions(config: Config, wide: int) -> int:
    """Of a warp in a phase, with so many columns."""
    of_tile = TILE_INSTRUCTIONS + WIDE_INSTRUCTIONS * (wide > COLUMNS)
    return PHASE_INSTRUCTIONS + config.sets * config.tiles * of_tile


def rounds(config: Config, problem: Problem) -> int:
    """How often all warps take a strip of K each."""
    return -(-problem.k // (GROUP_K * STRIP * config.warps))


def _offered(problem: Problem) -> Iterator[Config]:
    for config in CONFIGS:
        for split in SPLITS:
            each = config._replace(split=split)
            if unfit(each, problem) is None:
                yield each
