"""Streamed products made ready: launches for input sets in one configuration, or in the fastest of several."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from backends.triton.gemm.comparison import Comparison
from backends.triton.gemm.device import Device
from backends.triton.gemm.fitting import first_fitting, refuse_spills
from backends.triton.gemm.instructions import foreign
from backends.triton.gemm.launch import Load
from backends.triton.gemm.made import COMPILER_CACHE, Made, tuning_facts
from backends.triton.gemm.trials import SETS_AT_MOST
from backends.triton.gemm.tuning import search
from backends.triton.streaming.call import Operands, Workspace, streamed_call, workspace_sizes
from backends.triton.streaming.config import MULTIPLIER, Config, candidates, columns, parts
from backends.triton.streaming.problem import Problem

BUDGET_S = 30.0  # for the configurations of one product
EXACT_IN = "fp32 multiply-adds in registers, which hold these numbers exactly"
PART_BYTES = 4  # of what programs that share a tile leave for each other


class Maker:
    """Makes a configuration's launches for input sets; they share a workspace, being launched one after the other."""

    def __init__(self, problem: Problem, device: Device, operands: Sequence[Operands], loaded: Load) -> None:
        self.problem, self.device = problem, device
        self._operands, self._loaded = operands, loaded

    @property
    def choices(self) -> Sequence[Config]:
        return candidates(self.problem, self.device)

    def make(self, config: Config, sets: int | None = None, *, dependent: bool = False) -> Made:
        """Raises ``Refused`` for a configuration that spills: what it moves through memory is no streaming."""
        where = self._operands[0].y.device
        sizes = workspace_sizes(self.problem, config, self.device)
        parts = torch.empty(sizes.parts, dtype=torch.float32, device=where)
        workspace = Workspace(parts, torch.zeros(sizes.arrived, dtype=torch.int32, device=where))
        calls = [
            streamed_call(self.problem, config, self.device, each, workspace, dependent=dependent)
            for each in self._operands[:sets]
        ]
        began_s = time.perf_counter()
        ready = [self._loaded(call) for call in calls]
        compile_s = time.perf_counter() - began_s
        facts = ready[0].facts
        refuse_spills(facts)
        told: Mapping[str, Any] = {
            **facts,
            "configuration": config.label,
            "programs": calls[0].grid[0],
            **({} if config.kernel == MULTIPLIER else {"multiplied_by": EXACT_IN}),
            "compile_s": compile_s,
            "compiler_cache": COMPILER_CACHE,
        }
        return Made(tuple(each.launch for each in ready), told)

    def first(self) -> tuple[Config, Made]:
        """See ``first_fitting``."""
        return first_fitting(self.choices, self.make)

    def tuned(self, cuda: Any) -> tuple[Config, Made]:
        """The fastest of the choices, each held against the first one's result on the numbers that stand in the operands."""
        best, first = self.first()
        output = self._operands[0].y.flatten(1)
        trial = Comparison(lambda config: self.make(config, SETS_AT_MOST), output, cuda)
        found = search([best, *(each for each in self.choices if each != best)], trial, BUDGET_S)
        made = first if found.best == best else self.make(found.best)
        return found.best, made.knowing(tuning_facts(found))


def passing_bytes(problem: Problem, config: Config, device: Device) -> int:
    """What one launch writes and reads again: sums of programs that share a tile."""
    return parts(problem, config, device) * columns(problem, config, device) * config.rows * PART_BYTES


def emulation(facts: Mapping[str, Any], format_name: str) -> str:
    """What is multiplied where that is neither the format nor exact; empty where it is."""
    others = foreign(facts.get("instructions", []), format_name) if format_name != "fp32" else []
    return f"operands converted, then multiplied by {', '.join(others)}" if others else ""
