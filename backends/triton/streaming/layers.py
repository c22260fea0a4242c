"""What the launches of a step are given: the problem of each product, and tensors of every layer and set."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from backends.torch.data import Operand
from backends.torch.decode.operands import Buffers as DecodeBuffers
from backends.torch.decode.way import Task as DecodeTask
from backends.torch.decode_step.operands import StepBuffers
from backends.torch.decode_step.way import Task
from backends.triton.decode import port as decode_port
from backends.triton.gemm.device import Device
from backends.triton.streaming.call import Operands
from backends.triton.streaming.norm import slots
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


class Passed(NamedTuple):
    """What launches of one set leave for the norm behind them, see ``norm``; each reads it before the next one writes it.

    ``scaled`` (batch x hidden) is the stream times a norm's weights.  Sums of its squares (slots, batch, fp32) are those that
    the gathered embedding, attention's output and the feed-forward leave, each in slots of its own, and zero elsewhere.
    """

    scaled: torch.Tensor
    of_embedding: torch.Tensor
    of_o: torch.Tensor
    of_down: torch.Tensor

    def even(self) -> None:
        """Numbers for trying: a row whose mean square is 1."""
        self.scaled.normal_()
        for each in self[1:]:
            each.fill_(self.scaled.shape[1] / len(each))

    def clear(self) -> None:
        """What no part fills is zero."""
        for each in self[1:]:
            each.zero_()


def passed_in(each: StepBuffers) -> Passed:
    """Room for it."""
    batch, width = each.embedded.shape
    squares = torch.zeros(3, slots(width, batch), batch, dtype=torch.float32, device=each.embedded.device)
    return Passed(torch.empty_like(each.embedded), *squares)


def operands_of(kind: str, buffers: Sequence[StepBuffers], passed: Sequence[Passed]) -> list[Operands]:
    """Of one product in every set and layer, layer by layer; ``passed`` is that of each set."""
    if kind == "lm_head":
        return [
            Operands(each.lm_head.data, through.scaled, each.logits, through.of_down)
            for each, through in zip(buffers, passed, strict=True)
        ]
    make = {"qkv": _qkv, "o": _output, "gate_up": _gate_up, "down": _down}[kind]
    return [
        make(each, through, number) for each, through in zip(buffers, passed, strict=True) for number in range(len(each.layers))
    ]


def _qkv(each: StepBuffers, through: Passed, number: int) -> Operands:
    layer = each.layers[number]
    return Operands(
        layer.qkv.data,
        through.scaled,
        layer.q,
        through.of_down if number else through.of_embedding,
        k_cache=layer.k.data,
        v_cache=layer.v.data,
        rotation=each.rotation,
        positions=each.positions,
        table=each.table.data,
    )


def _output(each: StepBuffers, through: Passed, number: int) -> Operands:
    layer = each.layers[number]
    stream = each.layers[number - 1].out if number else each.embedded
    ready = {"norm": layer.feed_norm.data, "scaled": through.scaled, "left": through.of_o}
    return Operands(layer.o.data, layer.attended.flatten(1), layer.mid, residual=stream, **ready)


def _gate_up(each: StepBuffers, through: Passed, number: int) -> Operands:
    layer = each.layers[number]
    return Operands(layer.gate_up.data, through.scaled, layer.act, through.of_o)


def _down(each: StepBuffers, through: Passed, number: int) -> Operands:
    layer = each.layers[number]
    is_last = number + 1 == len(each.layers)
    norm = each.final_norm if is_last else each.layers[number + 1].attention_norm
    ready = {"norm": norm.data, "scaled": through.scaled, "left": through.of_down}
    return Operands(layer.down.data, layer.act, layer.out, residual=layer.mid, **ready)


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
