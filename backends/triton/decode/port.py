"""Cases of the decode job by the kernels here: which can run, and how their launches are made."""

import time
from collections.abc import Sequence
from typing import Any

import torch

from backends.seeds import mixed_seed
from backends.torch.decode.operands import Buffers
from backends.torch.decode.way import Task
from backends.torch.way import Made as MadeReady
from backends.triton.decode.call import Operands, Workspace, decode_call, workspace_shapes
from backends.triton.decode.config import Config, candidates
from backends.triton.decode.plan import Plan, planned
from backends.triton.decode.problem import Problem
from backends.triton.decode.problem import reason as problem_reason
from backends.triton.gemm.comparison import Comparison
from backends.triton.gemm.device import Device
from backends.triton.gemm.fitting import first_fitting, refuse_spills
from backends.triton.gemm.instructions import foreign
from backends.triton.gemm.launch import Load, load
from backends.triton.gemm.made import COMPILER_CACHE, Made, tuning_facts
from backends.triton.gemm.trials import SETS_AT_MOST
from backends.triton.gemm.tuning import search
from backends.triton.version import triton_version
from suite.case import Workload
from suite.jobs.decode import activation_of, scaling_of, sizes_of
from suite.jobs.emulation import EXECUTED_PIPE, PASSING_BYTES

BUDGET_S = 60.0
EIGHT_BITS_AS = "fp16"  # what the kernels convert queries and cache to, which holds every number of 8 bits
NUMBER_BYTES = 4  # of what passes from splits to the one that puts them together: sums and logarithms in fp32


def reason(workload: Workload, device: Device) -> str | None:
    """Why this step cannot be decoded here; ``None`` when it can."""
    return device.unknown or problem_reason(problem_of(workload), device)


def problem_of(workload: Workload) -> Problem:
    """As the kernels see a workload."""
    sizes = sizes_of(workload)
    return Problem(
        workload.format,
        sizes.num_q_heads,
        sizes.num_kv_heads,
        sizes.v_head_dim,
        sizes.page_size,
        sizes.q_len,
        sizes.heads.tail,
        sizes.has_shared_values,
        scaling_of(workload),
    )


def make(name: str, task: Task, device: Device, loaded: Load = load, cuda: Any = torch.cuda) -> MadeReady:
    """Compile and load; launches write into the output of their set and allocate nothing.

    Raises ``NotImplementedError`` where every configuration spills registers or does not fit.
    """
    maker = Maker(task, device, loaded)
    choices = candidates(maker.problem, device)
    best, made = first_fitting(choices, maker.make)
    if name == "triton_tuned":
        made = _tuned(maker, task, best, made, choices, cuda)
    emulated = emulation(maker.problem, activation_of(task.workload), made.facts["instructions"])
    executed = {EXECUTED_PIPE: EIGHT_BITS_AS} if emulated and maker.problem.has_eight_bits else {}
    return MadeReady(made.launches, {"library": f"Triton {triton_version()}", **made.facts, **executed}, emulation=emulated)


def emulation(problem: Problem, activation: str, instructions: list[str]) -> str:
    """What is multiplied where that is not the queries' own type; empty where it is.

    fp32 has no matrix instructions of its own.  The name of some instructions is the same for fp16 and bf16: that 8 bits become
    fp16 is known of the kernels.
    """
    others = [] if activation == "fp32" else foreign(instructions, activation)
    if problem.has_eight_bits and activation != EIGHT_BITS_AS:
        others = others or instructions
    return f"queries and cache converted, then multiplied by {', '.join(others)}" if others else ""


class Maker:
    """Makes a configuration's launches for each input set; they share a workspace, being launched one after the other."""

    def __init__(self, task: Task, device: Device, loaded: Load) -> None:
        self.problem = problem_of(task.workload)
        self._lengths, self._buffers, self._device, self._loaded = task.sizes.tokens, task.buffers, device, loaded

    def make(self, config: Config, sets: int | None = None) -> Made:
        """Raises ``Refused`` for a configuration that spills: what it moves through memory is no decoding's."""
        plan = self.plan(config)
        workspace = _workspace(self.problem, plan, len(self._lengths), self._buffers[0].o.device)
        operands = [operands_of(each) for each in self._buffers[:sets]]
        calls = [decode_call(self.problem, config, self._device, plan, each, workspace) for each in operands]
        began_s = time.perf_counter()
        ready = [self._loaded(call) for call in calls]
        compile_s = time.perf_counter() - began_s
        facts = ready[0].facts
        refuse_spills(facts)
        told = {
            **facts,
            "configuration": config.label,
            "splits": {"programs": len(plan.items) * self._programs(config), "most_of_a_sequence": plan.most_splits},
            PASSING_BYTES: passing_bytes(self.problem, plan),
            "compile_s": compile_s,
            "compiler_cache": COMPILER_CACHE,
        }
        return Made(tuple(each.launch for each in ready), told)

    def plan(self, config: Config) -> Plan:
        """By the lengths alone, so that new data needs no other."""
        return planned(self._lengths, config.block, self._programs(config), self._device.units * config.resident)

    def _programs(self, config: Config) -> int:
        """Of one split of a sequence."""
        return self.problem.kv_heads * -(-self.problem.rows // config.rows)


def operands_of(each: Buffers) -> Operands:
    """The tensors of a set."""
    return Operands(each.q.data, each.k.data, each.v.data, each.o, each.lse, each.table.data, each.k.scales, each.v.scales)


def passing_bytes(problem: Problem, plan: Plan) -> int:
    """What splits write for the one that puts them together: sums of ``width`` columns and a logarithm for each row."""
    split = sum(item.splits > 1 for item in plan.items)
    return split * problem.kv_heads * problem.rows * (problem.width + 1) * NUMBER_BYTES


def _workspace(problem: Problem, plan: Plan, batch: int, device: torch.device) -> Workspace:
    shapes = workspace_shapes(problem, plan, batch)
    parts, parts_lse = (torch.empty(shape, dtype=torch.float32, device=device) for shape in (shapes.parts, shapes.parts_lse))
    items = torch.tensor(plan.numbers, dtype=torch.int32).to(device)
    return Workspace(items, parts, parts_lse, torch.zeros(shapes.arrived, dtype=torch.int32, device=device))


def _tuned(maker: Maker, task: Task, best: Config, first: Made, choices: Sequence[Config], cuda: Any) -> Made:
    """The fastest of the choices, each held against the first one's result on the data that the case begins with."""
    for set_index, each in enumerate(task.buffers):
        for operand_index, operand in enumerate(each.operands):
            operand.refill(task.workload.distribution, mixed_seed(task.seed, set_index, operand_index))
    trial = Comparison(lambda config: maker.make(config, SETS_AT_MOST), task.buffers[0].output, cuda)
    found = search([best, *(each for each in choices if each != best)], trial, BUDGET_S)
    made = first if found.best == best else maker.make(found.best)
    return made.knowing(tuning_facts(found))
