"""flex_attention: a mask as a function of positions, compiled into torch's own template."""

import time
from functools import partial
from typing import Any

import torch

from backends.torch import compiling
from backends.torch.attention.way import Task, Way
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Workload
from suite.jobs.attention import Sizes, sizes_of


def refuses(workload: Workload, target: Target) -> str | None:
    """fp8, gradients, which it has through autograd only, and where nothing compiles: it would write its scores to memory."""
    if workload.format == "fp8_e4m3":
        return "flex_attention takes no fp8; naive, triton and triton_tuned do"
    if sizes_of(workload).is_backward:
        return "the backward pass of flex_attention runs inside autograd only; library_*, triton and naive have one to launch"
    return compiling.reason(target)


def make(task: Task) -> Made:
    """Compiled once for the sizes, here: the first launch would wait for it."""
    blocks = block_mask(task.sizes, task.target.device)
    began_s = time.perf_counter()
    with compiling.compiling():
        function = compiling.compiled(_attention(task.sizes.group > 1), "default")
        launches = [partial(function, each.q.data, each.k.data, each.v.data, blocks) for each in task.buffers]
        launches[0]()
        if task.target.kind == "cuda":
            torch.cuda.synchronize()
    facts = {
        "call": "torch.compile of flex_attention",
        "library": "torch.nn.attention.flex_attention",
        "compile_s": time.perf_counter() - began_s,
    }
    return Made(launches, facts, returns=True)


def _attention(grouped: bool) -> compiling.Function:
    """What is to be compiled."""
    from torch.nn.attention.flex_attention import flex_attention  # loads torch's compiler

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, blocks: Any) -> torch.Tensor:
        attended: torch.Tensor = flex_attention(q, k, v, block_mask=blocks, enable_gqa=grouped)
        return attended

    return attention


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


WAY = Way(refuses, make)
