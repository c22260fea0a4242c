"""Attention made ready: buffers, launches, and what is said of them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from backends.blind_spots import ATTENTION
from backends.torch.attention.error import quantisation_error
from backends.torch.attention.kernel import AttentionKernel
from backends.torch.attention.operands import Buffers, allocate
from backends.torch.attention.reference import Attention
from backends.torch.attention.way import Task
from backends.torch.attention.ways import WAYS
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Case
from suite.jobs.attention import HADAMARD, sizes_of


def prepare(case: Case, target: Target, sets: int, seed: int) -> AttentionKernel:
    """Allocate and fill ``sets`` input sets; raises torch's and Triton's own errors when memory or a compiler gives out."""
    workload, sizes = case.workload, sizes_of(case.workload)
    buffers = [allocate(workload, target.device) for _ in range(sets)]
    made = WAYS[case.implementation].make(Task(workload, sizes, target, buffers, seed))
    execution = "emulated" if made.emulation else target.execution(workload.format)
    described = {**_description(case, buffers), **_emulation(case, target, made), **made.facts}
    kernel = AttentionKernel(buffers, made, Attention(sizes), workload.distribution, execution, described)
    kernel.of_inputs = partial(_of_inputs, kernel, case)
    kernel.refill(seed)
    kernel.poison()
    return kernel


def _description(case: Case, buffers: Sequence[Buffers]) -> dict[str, Any]:
    first, semantics = buffers[0], dict(case.workload.semantics)
    return {
        "layout": "batch, heads, rows, columns",
        "operand_dtype": str(first.q.data.dtype).removeprefix("torch."),
        "output_dtype": str(first.output.dtype).removeprefix("torch."),
        "output": "O" if first.do is None else "dQ, dK and dV, one after the other",
        "mask_alignment": "the last query stands at the last key",
        **({"rotation": "random-sign Hadamard, applied before the timed launch"} if semantics.get(HADAMARD) else {}),
        "accumulate": "fp32",
        "reference": "float64",
        "check_cannot_see": list(ATTENTION.get(case.workload.distribution, ())),
    }


def _emulation(case: Case, target: Target, made: Made) -> dict[str, str]:
    return {"emulation": made.emulation or target.emulated.get(case.workload.format, "")}


def _of_inputs(kernel: AttentionKernel, case: Case) -> Mapping[str, Any]:
    error = quantisation_error(kernel, case.workload.format, sizes_of(case.workload))
    return {} if error is None else {"quantisation_error": error}
