"""How a decoding step is cut into programs."""

from collections.abc import Sequence
from typing import NamedTuple

from backends.triton.decode.problem import NUMBER_BYTES, Problem
from backends.triton.gemm.device import Device

REGISTERS, STAGED = "registers", "staged"  # the two kernels
REGISTER_WIDTHS = (64, 128)  # of heads that a warp's registers hold with the next block
REGISTER_ROWS = 16  # likewise
NARROWEST_ROWS = {REGISTERS: 8, STAGED: 16}  # of an instruction
WARPGROUP_ROWS = 64
MOST_ROWS_OF_FP32 = 16  # on NVIDIA, which has no instruction for it
WIDE = 256  # of heads from here on, sums take most of a program's registers
MERGED_REGISTERS = 128  # of a thread, for parts that are put together


class Config(NamedTuple):
    """``rows`` queries of a group against ``block`` tokens at a time; ``stages`` of the pipeline, 1 where there is none.

    ``resident`` is how many programs a unit is meant to have at once: the splits are planned for it.
    """

    kernel: str
    rows: int
    block: int
    warps: int
    stages: int
    resident: int

    @property
    def label(self) -> str:
        stages = f", {self.stages} stages" if self.kernel == STAGED else ""
        return f"{self.kernel} {self.rows}x{self.block}, {self.warps} warps{stages}, {self.resident} a unit"


def default(problem: Problem, device: Device) -> Config:
    """What is taken where nothing was tried."""
    return candidates(problem, device)[0]


def candidates(problem: Problem, device: Device) -> Sequence[Config]:
    """What is worth trying, the likeliest first."""
    found = [each for each in _all(problem, device) if shared_bytes(each, problem, device) <= device.shared_bytes]
    return list(dict.fromkeys(found)) or [Config(STAGED, 16, 16, 4, 1, 2)]


def _all(problem: Problem, device: Device) -> list[Config]:
    rows = rows_of(problem, STAGED, device)
    if device.is_amd:
        rows = min(rows, 32)
        warps = 4 if problem.width >= WIDE else 1
        return [Config(STAGED, rows, 32, warps, 2, 8), Config(STAGED, rows, 64, 4, 2, 4), Config(STAGED, rows, 32, 4, 1, 4)]
    if problem.format == "fp32":
        return _without_instructions(rows)
    if problem.width >= WIDE:
        return _wide(problem, rows if device.architecture != "100" else min(rows, 32))
    warps = max(2, rows // 16)
    many = [Config(STAGED, rows, 32, warps, 4, 4), Config(STAGED, rows, 32, warps, 3, 6), Config(STAGED, rows, 64, warps, 4, 2)]
    more = [
        Config(STAGED, rows, 64, warps, 3, 3),
        Config(STAGED, rows, 64, 2 * warps, 3, 3),
        Config(STAGED, rows, 32, warps // 2, 4, 4),
        # A program a unit: few splits to put together, for few sequences.
        Config(STAGED, rows, 64, warps, 4, 1),
        Config(STAGED, rows, 64, 2 * warps, 4, 1),
    ]
    if not by_registers(problem, device):
        return many + more
    narrow = rows_of(problem, REGISTERS, device)
    return [*(Config(REGISTERS, narrow, 32, 1, 1, resident) for resident in (8, 6, 4)), *many]


def _wide(problem: Problem, rows: int) -> list[Config]:
    """Heads of 256 columns, or of MLA: rows enough for products by warpgroups where there are queries enough.

    Not on sm_100, where sums of 64 x 512 would take all of the multiplier's own memory.
    """
    if rows == WARPGROUP_ROWS and not problem.has_eight_bits:
        return [Config(STAGED, 64, 32, 8, 3, 1), Config(STAGED, 64, 64, 8, 2, 1), Config(STAGED, 32, 64, 8, 2, 2)]
    rows = min(rows, 32)
    converts_wide = problem.has_eight_bits and problem.width > WIDE  # which takes registers beside those of the sums
    warps = 8 if rows == 32 or converts_wide else 4
    return [Config(STAGED, rows, 32, warps, 3, 2), Config(STAGED, rows, 64, 8, 2, 2), Config(STAGED, rows, 32, warps, 2, 2)]


def _without_instructions(rows: int) -> list[Config]:
    """fp32 on NVIDIA, whose threads multiply by themselves and hold all columns of what they multiply: many of them, and rows
    no more than there are.
    """
    few = rows <= 4
    block, warps = 16 if rows == MOST_ROWS_OF_FP32 else 32, 4 if few else 8
    first = [Config(STAGED, rows, block, warps, 3, 2), Config(STAGED, rows, 16, warps, 4, 3)]
    return [*first, Config(STAGED, rows, 32, 8, 3, 1), Config(STAGED, rows, 16, 8, 3, 2), Config(STAGED, rows, 16, 8, 2, 2)]


def by_registers(problem: Problem, device: Device) -> bool:
    """Whether 8-bit keys and values can go to the multiplier without shared memory between."""
    fitting = problem.width in REGISTER_WIDTHS and not problem.tail and not problem.shared_values
    return fitting and problem.has_eight_bits and not device.is_amd


def rows_of(problem: Problem, kernel: str, device: Device) -> int:
    """The fewest rows that hold a group's queries: of an instruction where there is one, and no more than registers hold."""
    narrowest, most = NARROWEST_ROWS[kernel], REGISTER_ROWS if kernel == REGISTERS else 64
    if problem.format == "fp32" and not device.is_amd:
        narrowest, most = 1, MOST_ROWS_OF_FP32
    return min(most, max(narrowest, 1 << (problem.rows - 1).bit_length()))


def shared_bytes(config: Config, problem: Problem, device: Device) -> int:
    """At most this much shared memory: a stage less than there are holds keys and values, and queries stand beside them."""
    columns = problem.width + problem.tail
    of_token = (columns + (0 if problem.shared_values else problem.width)) * NUMBER_BYTES[problem.format]
    if problem.scales == "token":
        of_token += 8
    wide_bytes = 4 if problem.format == "fp32" else 2
    queries = config.rows * (columns + config.block) * wide_bytes
    if device.multiplies_by_warpgroups and config.rows >= WARPGROUP_ROWS:  # whose left operand stands in shared memory too
        queries += config.rows * problem.width * wide_bytes
    exchanged = 4 * config.rows * problem.width
    if config.kernel == REGISTERS:
        return max(queries, exchanged)
    converted = config.block * columns * wide_bytes if problem.has_eight_bits else 0
    return max(config.block * of_token * max(1, config.stages - 1) + queries + converted, exchanged) + 1024


def at_once(config: Config, problem: Problem) -> int:
    """Parts of a sequence's splits that are under way together while they are put together."""
    return max(1, min(4, MERGED_REGISTERS * 32 * config.warps // (config.rows * problem.width)))
