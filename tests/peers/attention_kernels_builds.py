"""Roofbench's own kernels of ``attention_kernels``: their launches, and their compilation without a device."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from backends.triton.attention.problem import Problem
from suite.worker.serve import caught, describe
from tests.peers.attention_kernels_inputs import Tensors, dtype_of, shapes_of

HOPPER, HOPPER_GRADIENTS, PORTABLE, GRADIENTS = "Gluon", "Gluon gradients", "Triton", "Gradients"


class Build(NamedTuple):
    """One of our kernels for a problem; ``kind`` says which, ``config`` how it is cut."""

    kind: str
    problem: Problem
    config: Any

    @property
    def key(self) -> tuple[Any, ...]:
        """Builds with equal keys compile to the same kernel: lengths are arguments, unless one is ragged."""
        p = self.problem
        shape = (p.format, p.group > 1, p.qk_dim, p.v_dim, p.v_transposed)
        mask = (p.mask.first is not None, p.mask.last is not None)
        ragged = (p.q_len % 128, p.kv_len % 128)
        return (self.kind, shape, mask, ragged, self.config)


def calls_of(build: Build, tensors: Tensors, o: Any, lse: Any, scales: Sequence[Any], device: Any) -> list[Any]:
    """The launches of a build, in order, for one copy."""
    from backends.triton.attention.call import Gradients, Operands, backward_calls, forward_call, hopper_call
    from backends.triton.attention.hopper_backward_call import hopper_backward_calls, room_for

    problem = build.problem
    v = tensors["v"].transpose(2, 3).contiguous() if problem.v_transposed else tensors["v"]
    operands = Operands(tensors["q"], tensors["k"], v, o, lse, *scales)
    if build.kind == HOPPER:
        return [hopper_call(problem, build.config, device, operands)]
    if build.kind == PORTABLE:
        return [forward_call(problem, build.config, device, operands)]
    given = Gradients(tensors["do"], *(tensors[name] for name in ("dq", "dk", "dv", "delta")))
    if build.kind == HOPPER_GRADIENTS:
        return list(hopper_backward_calls(problem, build.config, operands, given, room_for(problem, lse.device)))
    of_keys, of_queries = build.config
    return list(backward_calls(problem, of_keys, of_queries, device, operands, given))


def compiled(build: Build, device: Any) -> str:
    """In a process of its own: put the kernels into Triton's cache.  Tensors without memory stand for the real ones."""
    problem = build.problem
    kinds = {name: torch.bfloat16 if name == "do" else dtype_of(problem) for name in shapes_of(problem)}
    tensors = {name: torch.empty(shape, dtype=kinds[name], device="meta") for name, shape in shapes_of(problem).items()}
    tensors |= {f"d{name}": tensors[name] for name in "qkv"}
    rows = torch.empty(problem.batch, problem.q_heads, problem.q_len, device="meta")
    tensors["delta"] = rows
    o = torch.empty(
        *rows.shape, problem.v_dim, dtype=torch.float16 if problem.format == "fp16" else torch.bfloat16, device="meta"
    )
    scales = (rows, rows, rows) if problem.format == "fp8_e4m3" else (None, None, None)

    def all_of_them() -> None:
        for call in calls_of(build, tensors, o, rows, scales, device):
            call.kernel.warmup(*call.arguments, grid=call.grid, **call.constants, **call.options)

    failure = caught(all_of_them, describe)
    return failure.reason if failure else ""
