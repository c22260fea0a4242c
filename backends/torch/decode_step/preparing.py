"""A part of the decode_step job made ready: buffers, launches, and what is said of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from backends.torch.decode_step import weights
from backends.torch.decode_step.kernel import StepKernel
from backends.torch.decode_step.operands import StepBuffers, allocate
from backends.torch.decode_step.staged import StagedKernel
from backends.torch.decode_step.way import Task
from backends.torch.decode_step.ways import WAYS
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Case
from suite.jobs.decode_step import WEIGHTS, sizes_of
from suite.jobs.decode_step.tolerance import stage_tolerances
from suite.jobs.decode_step.work import step_bytes

REFERENCE = "float64, each stage from what the one before it left"
# What a comparison with the reference cannot tell from a right result, because the wrong one has the same numbers.
BLIND_SPOTS = {"zeros": ("a wrong weight", "a wrong position", "a wrong page", "results kept from other data")}


def prepare(case: Case, target: Target, sets: int, seed: int) -> StagedKernel:
    """Allocate and fill ``sets`` input sets; raises torch's and Triton's own errors when memory or a compiler gives out."""
    if sizes_of(case.workload).part == WEIGHTS:
        return weights.prepare(case, target, sets, seed)
    workload, way = case.workload, WAYS[case.implementation]
    buffers = [allocate(workload, target.device, paged=way.paged) for _ in range(sets)]
    made = way.way.make(Task(workload, sizes_of(workload), target, buffers, seed))
    emulation = made.emulation or target.emulated.get(workload.format, "")
    execution = "emulated" if emulation else "native"
    described = _description(case, buffers, made, emulation)
    moved_bytes, tolerances = step_bytes(workload).total, stage_tolerances(workload)
    kernel = StepKernel(buffers, made, tolerances, moved_bytes, execution, workload.distribution, described)
    kernel.refill(seed)
    kernel.poison()
    return kernel


def _description(case: Case, buffers: Sequence[StepBuffers], made: Made, emulation: str) -> Mapping[str, Any]:
    first, moved = buffers[0], step_bytes(case.workload)
    return {
        "operand_dtype": str(first.lm_head.data.dtype).removeprefix("torch."),
        "bytes": moved._asdict(),
        "result": "logits of each sequence; which token they choose is no part of a step",
        "position": first.sizes.position,
        "accumulate": "fp32",
        "reference": REFERENCE,
        "check_cannot_see": list(BLIND_SPOTS.get(case.workload.distribution, ())),
        "emulation": emulation,
        **made.facts,
    }
