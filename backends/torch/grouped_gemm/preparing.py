"""A grouped product made ready: buffers, launches, and what is said of them."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from backends.distributions import BLIND_SPOTS
from backends.torch.gemm.operands import QuantisedOperand
from backends.torch.grouped_gemm.error import quantisation_error
from backends.torch.grouped_gemm.kernel import GroupedKernel
from backends.torch.grouped_gemm.operands import Buffers, allocated
from backends.torch.grouped_gemm.product import GroupedProduct
from backends.torch.grouped_gemm.way import Task
from backends.torch.grouped_gemm.ways import WAYS
from backends.torch.kernel import InputSet
from backends.torch.precision import precision_of
from backends.torch.target import FORMATS, Target
from suite.case import Case, Workload
from suite.jobs.emulation import TRAFFIC_BYTES
from suite.jobs.grouped_gemm import Sizes, sizes_of
from suite.jobs.grouped_gemm.work import bytes_of, stored_bytes_of

# What a comparison cannot tell from a right result, beside what it cannot of one product: the wrong one has the same numbers.
OTHER_GROUP = "rows multiplied by the B of another group"


def prepare(case: Case, target: Target, sets: int, seed: int) -> GroupedKernel:
    """Allocate and fill ``sets`` input sets; raises torch's and Triton's own errors when memory or a compiler gives out."""
    workload, sizes = case.workload, sizes_of(case.workload)
    precision = precision_of(workload.format, dict(case.switches))
    buffers = [allocated(workload, target.device) for _ in range(sets)]
    made = WAYS[case.implementation].make(Task(workload, sizes, target, buffers, seed, precision.fp8_fast_accum))
    execution = "emulated" if made.emulation else target.execution(workload.format)
    described = {
        **_description(workload, sizes, buffers[0]),
        "emulation": made.emulation or target.emulated.get(workload.format, ""),
        "switches_without_effect": ["fp8_fast_accum"] if made.emulation and precision.fp8_fast_accum else [],
        **made.facts,
    }
    input_sets = [InputSet(each.operands, each.output, launch) for each, launch in zip(buffers, made.launches, strict=True)]
    of_kernel = (GroupedProduct(sizes), workload.distribution, execution, precision, described)
    results = [(each.output,) for each in buffers]
    kernel = GroupedKernel(bytes_of(workload).total, input_sets, results, made.returns, *of_kernel)
    kernel.of_inputs = partial(_of_inputs, kernel, workload)
    kernel.refill(seed)
    kernel.poison()
    return kernel


def _description(workload: Workload, sizes: Sizes, first: Buffers) -> dict[str, Any]:
    moved, stored = bytes_of(workload).total, stored_bytes_of(workload).total
    operands = {"a": first.a, "b": first.b}
    quantised = {name: each.quantised.layout for name, each in operands.items() if isinstance(each, QuantisedOperand)}
    return {
        "layout": "nt",
        "operand_dtype": _name_of(first.a.data.dtype),
        "output_dtype": _name_of(first.output.dtype),
        **({"stored": quantised} if quantised else {}),
        "rows_of_groups": {
            "fewest": min(sizes.rows),
            "most": max(sizes.rows),
            "groups_without": sizes.groups - sizes.busy,
            "filled_up": sizes.height - sizes.m,
        },
        **({TRAFFIC_BYTES: stored} if stored > moved else {}),
        "accumulate": FORMATS[workload.format].accumulate,
        "reference": "float64",
        "check_cannot_see": blind_spots(workload, sizes),
    }


def blind_spots(workload: Workload, sizes: Sizes) -> list[str]:
    """What the check does not see on this data."""
    spots = list(BLIND_SPOTS.get(workload.distribution, ()))
    return [*spots, OTHER_GROUP] if spots and sizes.groups > 1 else spots


def _of_inputs(kernel: GroupedKernel, workload: Workload) -> Mapping[str, Any]:
    error = quantisation_error(kernel, workload.format, sizes_of(workload))
    return {} if error is None else {"quantisation_error": error}


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
