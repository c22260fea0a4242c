"""A step through torch, launch by launch: its norms, products and attention, on caches that lie in one piece.

What it writes between launches stays in buffers of each layer's own, as the check wants it; attention returns its results in
buffers of torch's.
"""

from collections.abc import Sequence
from functools import partial

import torch
from torch.nn import functional

from backends.torch.decode_step.operands import Layer, StepBuffers
from backends.torch.decode_step.reference import EPSILON
from backends.torch.decode_step.way import Task
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Workload
from suite.jobs.decode.cache import NUMBER_BYTES
from suite.jobs.decode_step import sizes_of
from suite.jobs.decode_step.work import activation_bytes
from suite.jobs.emulation import PASSING_BYTES


def refuses(workload: Workload, target: Target) -> str | None:
    """Nothing: what every torch device has is enough."""
    return None


def make(task: Task) -> Made:
    """Launches that return what attention left in each layer."""
    facts = {
        "call": "torch.nn.functional.rms_norm, torch.mm, torch.nn.functional.scaled_dot_product_attention",
        "library": "torch",
        "attention_backend": "torch's own choice",
        "cache_layout": "in one piece: batch, KV heads, tokens, columns; no page table is read",
        PASSING_BYTES: activation_bytes(sizes_of(task.workload), NUMBER_BYTES[task.workload.format]),
    }
    return Made([partial(launch, each) for each in task.buffers], facts, returns=True)


def launch(each: StepBuffers) -> Sequence[torch.Tensor]:
    """One step; attention's results, layer by layer."""
    torch.index_select(each.embedding.data, 0, each.tokens.data, out=each.embedded)
    turn = each.rotation.index_select(0, each.positions)[:, None]
    stream, returned = each.embedded, []
    for layer in each.layers:
        returned.append(_attention(each, layer, stream, turn))
        torch.mm(returned[-1].flatten(1), layer.o.data.t(), out=layer.mid)
        layer.mid.add_(stream)
        _feed_forward(layer)
        stream = layer.out
    torch.mm(_normed(stream, each.final_norm.data), each.lm_head.data.t(), out=each.logits)
    return returned


def _normed(stream: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(stream, weights.shape, weights, EPSILON)


def _attention(each: StepBuffers, layer: Layer, stream: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
    """(batch, 1, query heads, columns), in a new tensor."""
    sizes = each.sizes
    projected = torch.mm(_normed(stream, layer.attention_norm.data), layer.qkv.data.t())
    heads = projected.unflatten(1, (-1, sizes.head_dim))
    q, k, v = heads.split((sizes.num_q_heads, sizes.num_kv_heads, sizes.num_kv_heads), 1)
    layer.q[:, 0].copy_(_rotated(q, turn))
    keys, values = (cache.data[: sizes.batch] for cache in (layer.k, layer.v))
    keys[:, :, sizes.position].copy_(_rotated(k, turn))
    values[:, :, sizes.position].copy_(v)
    found = functional.scaled_dot_product_attention(layer.q.transpose(1, 2), keys, values, enable_gqa=sizes.group > 1)
    return found.transpose(1, 2)


def _rotated(heads: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
    """Heads (batch, heads, columns) turned in fp32 by cosines and sines (batch, 1, columns)."""
    low, high = heads.to(torch.float32).chunk(2, -1)
    cosine, sine = turn.chunk(2, -1)
    return torch.cat((low * cosine - high * sine, high * cosine + low * sine), -1)


def _feed_forward(layer: Layer) -> None:
    both = torch.mm(_normed(layer.mid, layer.feed_norm.data), layer.gate_up.data.t())
    gate, up = both.chunk(2, 1)
    torch.mul(functional.silu(gate), up, out=layer.act)
    torch.mm(layer.act, layer.down.data.t(), out=layer.out)
    layer.out.add_(layer.mid)
