"""What the launches of a step are given: the problem of each product, and tensors of every layer and set."""

from collections.abc import Sequence

import torch

from backends.torch.data import Operand
from backends.torch.decode.operands import Buffers as DecodeBuffers
from backends.torch.decode.way import Task as DecodeTask
from backends.torch.decode_step.operands import Layer, StepBuffers
from backends.torch.decode_step.way import Task
from backends.triton.decode import port as decode_port
from backends.triton.gemm.device import Device
from backends.triton.streaming.call import Operands
from backends.triton.streaming.problem import PLAIN, RESIDUAL, ROTATED, SWIGLU, Problem
from backends.triton.streaming.problem import reason as problem_reason
from suite.case import Workload
from suite.jobs.decode.sizes import params_of as decode_params
from suite.jobs.decode_step import Sizes, sizes_of


def reason(workload: Workload, device: Device) -> str | None:
    """Why this step is not computed here; ``None`` where it is."""
    told = (problem_reason(each, device) for each in problems_of(workload).values())
    found = next((each for each in told if each is not None), None)
    return found or decode_port.reason(decode_workload(workload), device)


def problems_of(workload: Workload) -> dict[str, Problem]:
    """The products of a step as the kernels see them, by name."""
    sizes = sizes_of(workload)
    n_k = {each.name: (each.n, each.k) for each in sizes.products}
    ends = {"qkv": ROTATED, "o": RESIDUAL, "gate_up": SWIGLU, "down": RESIDUAL, "lm_head": PLAIN}
    heads = (sizes.num_q_heads, sizes.num_kv_heads, sizes.head_dim, sizes.page_size)
    return {
        kind: Problem(workload.format, sizes.batch, *n_k[kind], end, end != RESIDUAL, *(heads if end == ROTATED else ()))
        for kind, end in ends.items()
    }


def decode_workload(workload: Workload) -> Workload:
    """Attention of one layer as a workload of the decode job."""
    return Workload("decode", workload.format, decode_params(sizes_of(workload).cache), workload.distribution)


def operands_of(kind: str, buffers: Sequence[StepBuffers]) -> list[Operands]:
    """Of one product in every set and layer, layer by layer."""
    if kind == "lm_head":
        return [_head(each) for each in buffers]
    make = {"qkv": _qkv, "o": _output, "gate_up": _gate_up, "down": _down}[kind]
    return [
        make(each, layer, before)
        for each in buffers
        for layer, before in zip(each.layers, (each.embedded, *(layer.out for layer in each.layers)), strict=False)
    ]


def _qkv(each: StepBuffers, layer: Layer, stream: torch.Tensor) -> Operands:
    caches = (layer.k.data, layer.v.data)
    return Operands(
        layer.qkv.data,
        stream,
        layer.q,
        layer.attention_norm.data,
        None,
        *caches,
        each.rotation,
        each.positions,
        each.table.data,
    )


def _output(each: StepBuffers, layer: Layer, stream: torch.Tensor) -> Operands:
    return Operands(layer.o.data, layer.attended.flatten(1), layer.mid, residual=stream)


def _gate_up(each: StepBuffers, layer: Layer, stream: torch.Tensor) -> Operands:
    return Operands(layer.gate_up.data, layer.mid, layer.act, layer.feed_norm.data)


def _down(each: StepBuffers, layer: Layer, stream: torch.Tensor) -> Operands:
    return Operands(layer.down.data, layer.act, layer.out, residual=layer.mid)


def _head(each: StepBuffers) -> Operands:
    return Operands(each.lm_head.data, each.layers[-1].out, each.logits, each.final_norm.data)


def attention_of(task: Task) -> DecodeTask:
    """Every layer of every set as an input set of the decode job."""
    sizes: Sizes = task.sizes
    workload = decode_workload(task.workload)
    lse = torch.empty(sizes.batch, 1, sizes.num_q_heads, dtype=torch.float32, device=task.target.device)
    buffers = [
        DecodeBuffers(each.table, Operand(layer.q), layer.k, layer.v, layer.attended, lse)
        for each in task.buffers
        for layer in each.layers
    ]
    return DecodeTask(workload, sizes.cache, task.target, buffers, task.seed)
