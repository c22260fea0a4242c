"""Roofbench's own ways of ``decode_kernels``, and their compilation without a device."""

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

import torch

from suite.worker.serve import caught, describe
from tests.peers.compiler import Compilation
from tests.peers.decode_kernels_cases import Case, Group
from tests.peers.decode_kernels_inputs import DTYPES, Inputs
from tests.peers.rotation import Launch, Way


def call_of(case: Case, config: Any, device: Any, tensors: Sequence[Any], workspace: Any = None) -> Any:
    """One launch; ``tensors`` are q, k, v, o, lse, table and the scales.  Makes a workspace where none is given."""
    from backends.triton.decode.call import Operands, Workspace, decode_call, workspace_shapes
    from backends.triton.decode.plan import planned

    p, operands = case.problem, Operands(*tensors)
    blocks = -(-p.rows // config.rows)
    plan = planned(case.lengths, config.block, p.kv_heads * blocks, device.units * config.resident)
    if workspace is None:
        shapes, where = workspace_shapes(p, plan, len(case.lengths)), operands.q.device
        items = torch.tensor(plan.numbers, dtype=torch.int32).to(where)
        parts, parts_lse = (torch.empty(shape, device=where) for shape in (shapes.parts, shapes.parts_lse))
        workspace = Workspace(items, parts, parts_lse, torch.zeros(shapes.arrived, dtype=torch.int32, device=where))
    return decode_call(p, config, device, plan, operands, workspace)


def compiled(case: Case, config: Any, device: Any) -> str:
    """In a process of its own: put the kernel into Triton's cache.  Tensors without memory stand for the real ones."""
    p, batch = case.problem, len(case.lengths)

    def empty(*sizes: int, kind: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.empty(*sizes, dtype=kind, device="meta")

    q = empty(batch, p.q_len, p.q_heads, p.width + p.tail, kind=torch.bfloat16)
    o = empty(batch, p.q_len, p.q_heads, p.width, kind=torch.bfloat16)
    shape = (64, p.page_size, p.kv_heads) if case.tokens_first else (64, p.kv_heads, p.page_size)
    cache = empty(*shape, p.width + p.tail, kind=DTYPES[p.format])
    cache = cache.transpose(1, 2) if case.tokens_first else cache
    scale = {"none": None, "tensor": empty(1), "token": empty(64, p.kv_heads, p.page_size)}[p.scales]
    table = empty(batch, -(-max(case.lengths) // p.page_size), kind=torch.int32)
    tensors = (q, cache, cache, o, empty(batch, p.q_len, p.q_heads), table, scale, scale)

    def warm() -> None:
        call = call_of(case, config, device, tensors)
        call.kernel.warmup(*call.arguments, grid=call.grid, **call.constants, **call.options)

    failure = caught(warm, describe)
    return failure.reason if failure else ""


def configs_of(case: Case, device: Any) -> Sequence[Any]:
    from backends.triton.decode.config import candidates

    return candidates(case.problem, device)[: case.tried]


def compilations(group: Group, device: Any) -> dict[Hashable, Compilation]:
    """Of every configuration of every case."""
    pairs = [(case, config) for case in group.cases for config in configs_of(case, device)]
    return {pair: partial(compiled, *pair, device) for pair in pairs}


def ours(inputs: Inputs, config: Any, device: Any) -> Way:
    """A configuration of ours, loaded; it returns output and logarithms of sums."""
    from backends.triton.decode.call import Workspace
    from backends.triton.gemm.launch import load

    def launch(run: Launch) -> tuple[torch.Tensor, torch.Tensor]:
        run()
        return inputs.o, inputs.lse

    launches, workspace = [], None
    for k, v, k_scale, v_scale in inputs.copies:
        tensors = (inputs.q, k, v, inputs.o, inputs.lse, inputs.table, k_scale, v_scale)
        call = call_of(inputs.case, config, device, tensors, workspace)
        workspace = Workspace(*call.arguments[8:12])  # launches of one stream share it
        launches.append(partial(launch, load(call).launch))
    return Way(config.label, launches)
