"""Cases of the grouped_gemm job by the kernels here: which can run, and how their launches are made."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch

from backends.seeds import mixed_seed
from backends.torch.gemm.operands import QuantisedOperand, arranged_by, quantised_of
from backends.torch.grouped_gemm.operands import Buffers, scales_of
from backends.torch.grouped_gemm.way import Task
from backends.torch.way import Made as MadeReady
from backends.triton.fp8_blocks.hopper_config import HopperConfig
from backends.triton.gemm.call import Call
from backends.triton.gemm.comparison import Comparison
from backends.triton.gemm.config import Config, by_descriptors
from backends.triton.gemm.device import Device
from backends.triton.gemm.launch import Load, load
from backends.triton.gemm.made import COMPILER_CACHE, Made, tuning_facts
from backends.triton.gemm.port import BUDGET_S, LARGEST, emulation
from backends.triton.gemm.port import reason as plain_reason
from backends.triton.gemm.trials import SETS_AT_MOST
from backends.triton.gemm.tuning import search
from backends.triton.grouped import hopper_call
from backends.triton.grouped.call import Matrices, calls, room_of_list
from backends.triton.grouped.config import candidates
from backends.triton.grouped.problem import BLOCK, NONE, Problem
from backends.triton.quantised.prepack import by_blocks
from backends.triton.version import triton_version
from suite.case import Workload
from suite.jobs.grouped_gemm import sizes_of
from suite.jobs.grouped_gemm.formats import scaling_of

GLUON = "gluon"
AnyConfig: TypeAlias = Config | HopperConfig
SCHEDULE = "in each launch, on the device, from where groups end there: what a router leaves"


def problem_of(workload: Workload, fast_accum: bool = False) -> Problem:
    """As the kernels see a workload."""
    sizes, scales = sizes_of(workload), scaling_of(workload) or NONE
    promoted = scales == "row" and not fast_accum
    return Problem(workload.format, sizes.stored_rows, sizes.n, sizes.k, promoted, scales)


def reason(name: str, workload: Workload, device: Device) -> str | None:
    """Why an implementation cannot compute this product here; ``None`` when it can."""
    problem = problem_of(workload)
    if problem.groups * problem.n > LARGEST:
        return f"this kernel takes up to {LARGEST} rows of B in all groups together, not {problem.groups * problem.n}"
    if name == GLUON:
        return hopper_call.reason(problem, device)
    told = plain_reason(problem.plain, {}, device)
    if told is not None:
        return told
    if not candidates(problem, device):
        return f"no configuration of this kernel for {problem.format} has room in {device.shared_bytes} bytes of shared memory"
    return None


def make(name: str, task: Task, device: Device, loaded: Load = load, cuda: Any = torch.cuda) -> MadeReady:
    """Compile and load; launches write into the output of their set and allocate nothing."""
    maker = Maker(task, device, loaded)
    choices: Sequence[AnyConfig] = hopper_call.candidates(device) if name == GLUON else candidates(maker.problem, device)
    chosen_by = "the first of a table that fits" if name == GLUON else "a model of the device"
    made = maker.make(choices[0]).knowing({"chosen_by": chosen_by})
    if name == "triton_tuned":
        made = _tuned(maker, task, made, choices, cuda)
    facts = {"library": f"Triton {triton_version()}", "schedule": SCHEDULE, **made.facts}
    return MadeReady(made.launches, facts, emulation=emulation(made.facts, maker.problem.format))


class Maker:
    """Makes a configuration's launches for each input set; they share a list of tiles, being launched one after the other."""

    def __init__(self, task: Task, device: Device, loaded: Load) -> None:
        self.problem = problem_of(task.workload, task.fast_accum)
        self._device, self._loaded, self._where = device, loaded, task.target.device
        self._matrices = [_matrices(self.problem, each) for each in task.buffers]

    def make(self, config: AnyConfig, sets: int | None = None) -> Made:
        """For the first ``sets`` input sets, or all."""
        tile_list = torch.zeros(room_of_list(self.problem, config.block_m), dtype=torch.int32, device=self._where)
        wanted = [self._calls(config, each, tile_list) for each in self._matrices[:sets]]
        began_s = time.perf_counter()
        ready = [[self._loaded(call) for call in each] for each in wanted]
        compile_s = time.perf_counter() - began_s
        first, last = ready[0]
        told = {
            **_cut(self.problem, config, self._device),
            "programs": wanted[0][-1].grid[0],
            "passes": [first.facts.get("kernel", "")],
            **last.facts,
            "compile_s": compile_s,
            "compiler_cache": COMPILER_CACHE,
        }
        return Made(tuple(_in_turn([each.launch for each in parts]) for parts in ready), told)

    def _calls(self, config: AnyConfig, given: Matrices, tile_list: Any) -> list[Call]:
        if isinstance(config, HopperConfig):
            return hopper_call.calls(self.problem, config, self._device, given, tile_list)
        return calls(self.problem, config, self._device, given, tile_list)


def _cut(problem: Problem, config: AnyConfig, device: Device) -> dict[str, Any]:
    """How the product is cut, for people and for whoever repeats it."""
    if isinstance(config, HopperConfig):
        return config.facts
    described = by_descriptors(problem.plain, device)
    own = {"slices": config.slices, "flattened": config.flatten, "programs_per_unit": config.resident} if described else {}
    why = problem.plain.undescribed if device.has_descriptors else f"{device.name} has no tensor descriptors"
    return {
        "loads": "tensor descriptors" if described else f"pointers: {why}",
        "tiles": config.tiles,
        "warps": config.warps,
        "stages": config.stages,
        "group": config.group,
        **own,
    }


def _matrices(problem: Problem, each: Buffers) -> Matrices:
    """With scales of blocks of A kept twice: as they are stored, and turned."""
    a_scale = scales_of(each.a)
    if problem.scales == BLOCK:
        assert isinstance(each.a, QuantisedOperand)
        stored = quantised_of(each.a).scales
        a_scale = by_blocks(stored)
        arranged_by(each.a, partial(by_blocks, stored, a_scale))
    return Matrices(each.a.data, each.b.data, each.output, each.ends.data, a_scale, scales_of(each.b))


def _in_turn(launches: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
    schedule, product = launches

    def launch() -> None:
        schedule()
        product()

    return launch


def _tuned(maker: Maker, task: Task, first: Made, choices: Sequence[AnyConfig], cuda: Any) -> Made:
    """The fastest of the choices, each held against the first one's result on the data that the case begins with."""
    for set_index, each in enumerate(task.buffers):
        for operand_index, operand in enumerate(each.operands):
            operand.refill(task.workload.distribution, mixed_seed(task.seed, set_index, operand_index))
    trial = Comparison(lambda config: maker.make(config, SETS_AT_MOST), task.buffers[0].output, cuda)
    found = search(choices, trial, BUDGET_S)
    made = first if found.best == choices[0] else maker.make(found.best)
    return made.knowing(tuning_facts(found))
