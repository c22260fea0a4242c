"""Torch's grouped products: one call for all groups, which reads on the device where they end.

For bf16 on sm_90 and sm_100 it is a CUTLASS kernel, and so is that of fp8 with scales of rows; for all else ATen copies the
offsets to the host in each call and multiplies group by group (``GroupedBlas.cpp`` and ``GroupedMMUtils.h`` there).  That is
``loop`` with a wait in it, and no launch that a graph could hold: refused but on a CPU, where there is nothing to wait for.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from backends.torch.gemm.way import multiples
from backends.torch.grouped_gemm.operands import Buffers, scales_of
from backends.torch.grouped_gemm.way import Task, Way
from backends.torch.quantise.consumable import Target as Machine
from backends.torch.target import FORMATS, Target
from backends.torch.way import Made
from suite.case import Workload
from suite.jobs.grouped_gemm import Sizes, sizes_of
from suite.jobs.grouped_gemm.formats import BLOCK, scaling_of

PLAIN, SCALED = "torch.nn.functional.grouped_mm", "torch._scaled_grouped_mm"
ROW_BYTES = 16  # of a row of A and of B: what a multiple of is asked for
SCALED_STEP = 16  # of n and k, where numbers carry scales
WITH_KERNELS = (9, 10)  # compute capabilities, by their first number
CUTLASS, LOOP = "torch's CUTLASS kernel", "one product a group, within torch"


def refuses(workload: Workload, target: Target) -> str | None:
    """What torch does not have, or has as a loop that waits for the device."""
    scaling, sizes = scaling_of(workload), sizes_of(workload)
    if scaling == BLOCK:
        others = "loop" if target.kind == "cpu" else "loop or triton, or scaling=row"
        return f"torch's grouped products take fp8 with scales of rows, not of blocks; take {others}"
    call = PLAIN if scaling is None else SCALED
    if not _has(call):
        return f"torch {torch.__version__} has no {call}; take loop"
    if target.kind == "cpu":
        return f"{SCALED} runs on GPUs; take loop" if scaling else _misaligned(call, workload.format, sizes)
    capability = Machine.parse(target.architecture).capability
    if capability is None or capability[0] not in WITH_KERNELS:
        known = " and ".join(f"sm_{each}0" for each in WITH_KERNELS)
        return f"torch has kernels for grouped products on {known}, not on {target.architecture}; take loop"
    if scaling is None and workload.format != "bf16":
        return f"{PLAIN} has a kernel for bf16; of {workload.format} it copies the offsets to the host in each call; take loop"
    return _misaligned(call, workload.format, sizes)


def make(task: Task) -> Made:
    """Launches that return C in a buffer of torch's."""
    scaling = scaling_of(task.workload)
    bind: Callable[[Buffers], Callable[[], Any]] = partial(_plain if scaling is None else _scaled, task)
    facts = {
        "call": PLAIN if scaling is None else SCALED,
        "library": LOOP if task.target.kind == "cpu" else CUTLASS,
        "offsets": "read in each launch",
        "results": "in a new matrix for each launch",
    }
    return Made([bind(each) for each in task.buffers], facts, returns=True)


def _has(call: str) -> bool:
    module, _, name = call.rpartition(".")
    return hasattr(torch.nn.functional if module.endswith("functional") else torch, name)


def _misaligned(call: str, format_name: str, sizes: Sizes) -> str | None:
    if format_name == "fp8_e4m3":
        return multiples(call, SCALED_STEP, n=sizes.n, k=sizes.k)
    return multiples(call, ROW_BYTES // FORMATS[format_name].operand.itemsize, k=sizes.k)


def _groups(each: Buffers, task: Task) -> torch.Tensor:
    """B as (groups, k, n): a view, with k contiguous."""
    return each.b.data.view(task.sizes.groups, task.sizes.n, task.sizes.k).transpose(1, 2)


def _plain(task: Task, each: Buffers) -> Callable[[], Any]:
    return partial(torch.nn.functional.grouped_mm, each.a.data, _groups(each, task), offs=each.ends.data)


def _scaled(task: Task, each: Buffers) -> Callable[[], Any]:
    of_a, of_b = scales_of(each.a), scales_of(each.b)
    assert of_a is not None
    assert of_b is not None
    return partial(
        torch._scaled_grouped_mm,
        each.a.data,
        _groups(each, task),
        of_a.view(-1),
        of_b.view(task.sizes.groups, task.sizes.n),
        offs=each.ends.data,
        out_dtype=each.output.dtype,
        use_fast_accum=task.fast_accum,
    )


WAY = Way(refuses, make)
