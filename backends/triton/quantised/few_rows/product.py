"""The product as calls of its kernel, and weights kept once more in the kernel's order."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton.language as tl

from backends.torch.gemm.operands import arranged_by, quantised_of
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device
from backends.triton.gemm.kernel import Buffers
from backends.triton.quantised.emulated import of_converted_weights
from backends.triton.quantised.few_rows import config as configs
from backends.triton.quantised.few_rows.config import Config, columns, programs
from backends.triton.quantised.few_rows.kernel import few_rows
from backends.triton.quantised.few_rows.order import GROUP_K, STRIP, Ordered
from backends.triton.quantised.problem import Problem

BEYOND = 1 << 30  # a phase that no product has


def call(problem: Problem, config: Config, x: torch.Tensor, w: Ordered, c: torch.Tensor, held: "Scratch") -> Call:
    """C (m x n) = X (m x k, bf16) W^T."""
    arguments = (
        w.words,
        x.view(torch.int32),
        w.scales.view(torch.int32),
        None if w.zero_points is None else w.zero_points.view(torch.int32),
        c,
        *held,
        *(problem.m, problem.n, problem.k, w.tiles, BEYOND),
    )
    constants = {
        "TILES": config.tiles,
        "COLUMNS": columns(problem),
        "SETS": config.sets,
        "WARPS": config.warps,
        "SPLIT": config.split,
        "WHOLE": problem.k % (GROUP_K * STRIP * config.warps) == 0,
        "FORMAT": "uint4" if problem.zero_point else "int4",
        "DTYPE": tl.bfloat16,
        "ASM": True,
    }
    # One stage: loads go to registers, and the loop has them ahead itself.
    options = {"num_warps": config.warps, "num_stages": 1, "maxnreg": config.registers}
    return Call(few_rows, (programs(config, problem), 1, 1), arguments, constants, options)


Scratch = tuple[torch.Tensor, torch.Tensor]


def scratch(problem: Problem, config: Config, device: torch.device) -> Scratch:
    """What programs that share rows leave for each other: sums, and a count that is 0 between launches; for one at a time."""
    count = programs(config, problem)
    sums = torch.empty(
        count * columns(problem) // config.sets * config.rows if config.split > 1 else 1, dtype=torch.float32, device=device
    )
    return sums, torch.zeros(count // config.split, dtype=torch.int32, device=device)


class FewRows:
    """See ``product.Product``.  Weights are kept twice: as they are stored, for the check, and in the order of the kernel."""

    conversion = None

    def __init__(self, problem: Problem, device: Device, buffers: Sequence[Buffers]) -> None:
        self._problem, self._device = problem, device
        self._sets = [(each, Ordered.empty(quantised_of(each.b))) for each in buffers]
        for each, ordered in self._sets:
            arranged_by(each.b, ordered.fill)

    def configs(self) -> Sequence[Config]:
        return configs.candidates(self._problem, self._device)

    def unfit(self, config: Config) -> str | None:
        return configs.unfit(config, self._problem)

    def takes(self, conversion: None) -> bool:
        return True

    def calls(self, config: Config) -> list[list[Call]]:
        held = scratch(self._problem, config, self._sets[0][0].output.device)  # of all sets: their launches follow each other
        return [[call(self._problem, config, each.a.data, ordered, each.output, held)] for each, ordered in self._sets]

    def describe(self, config: Config) -> Mapping[str, Any]:
        return {
            "loads": "to registers",
            "tiles": f"{config.rows}x{columns(self._problem)}x{GROUP_K}",
            "tiles_axes": "n m k",
            "warps": config.warps,
            "groups_of_a_phase": config.sets,
            "registers": config.registers,
            "programs_per_tile": config.split,
            "conversion": f"{'uint4' if self._problem.zero_point else 'int4'} to bf16 in registers, scales on the sums",
        }

    def emulation(self, facts: Mapping[str, Any]) -> str:
        return of_converted_weights(facts)

    def close(self) -> None:
        self._sets = []
