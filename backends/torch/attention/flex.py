"""flex_attention: a mask as a function of positions, compiled into torch's own template."""

from functools import partial
from typing import Any

import torch

from backends.torch.attention.operands import Buffers
from backends.torch.attention.way import Task, Way
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Workload
from suite.jobs.attention import Sizes, sizes_of


def refuses(workload: Workload, target: Target) -> str | None:
    """fp8, and gradients, which it has through autograd only."""
    if workload.format == "fp8_e4m3":
        return "flex_attention takes no fp8; naive, triton and triton_tuned do"
    if sizes_of(workload).is_backward:
        return "the backward pass of flex_attention runs inside autograd only; library_*, triton and naive have one to launch"
    return None


def make(task: Task) -> Made:
    """Compiled once for the sizes, here: the first launch would wait for it."""
    from torch.nn.attention.flex_attention import flex_attention  # loads torch's compiler

    blocks = block_mask(task.sizes, task.target.device)
    compiled = torch.compile(flex_attention, dynamic=False)
    launches = [partial(_launch, compiled, blocks, task.sizes.group > 1, each) for each in task.buffers]
    launches[0]()
    facts = {"call": "torch.compile of flex_attention", "library": "torch.nn.attention.flex_attention"}
    return Made(launches, facts, returns=True)


def block_mask(sizes: Sizes, device: torch.device) -> Any:
    """Which blocks of queries and keys are visited; ``None`` where all are."""
    from torch.nn.attention.flex_attention import create_block_mask

    first, last = sizes.bounds
    if last is None:
        return None

    def seen(_batch: Any, _head: Any, i: Any, j: Any) -> Any:
        below = j - i <= last
        return below if first is None else below & (j - i >= first)

    return create_block_mask(seen, None, None, sizes.q_len, sizes.kv_len, device=device)


def _launch(compiled: Any, blocks: Any, grouped: bool, each: Buffers) -> tuple[torch.Tensor, ...]:
    with torch.no_grad():
        return (compiled(each.q.data, each.k.data, each.v.data, block_mask=blocks, enable_gqa=grouped),)


WAY = Way(refuses, make)
