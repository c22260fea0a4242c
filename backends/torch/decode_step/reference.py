"""What each stage of a step should be: in float64, of weights as they are stored and of the stages before it as they stand."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import torch

from backends.torch.check import row_blocks
from backends.torch.data import Operand
from backends.torch.decode.reference import Decoding, Group
from backends.torch.decode_step.cache import newest
from backends.torch.decode_step.operands import Layer, StepBuffers, rotation
from backends.torch.decode_step.stages import Exact, Stage
from suite.jobs.decode_step import Sizes

EPSILON = 1e-5  # beside the mean square in a norm


def stages(each: StepBuffers, tolerances: Mapping[str, float]) -> list[Stage]:
    """All of them, in their order; a defect counts by the largest tolerance over the stage's own."""
    most = max(tolerances.values())
    return [
        Stage(f"{place} {name}".strip(), found, exact, most / tolerances[name]) for place, name, found, exact in _stages(each)
    ]


def _stages(each: StepBuffers) -> Iterator[tuple[str, str, torch.Tensor, Exact]]:
    yield "", "embedding", each.embedded, partial(_embedded, each)
    stream = each.embedded
    for number, layer in enumerate(each.layers):
        place = f"layer {number}"
        for name, found, exact in _of_layer(each, layer, stream):
            yield place, name, found, exact
        stream = layer.out
    yield "", "logits", each.logits, partial(_product, each.lm_head.data, partial(_normed, stream, each.final_norm))


def _of_layer(each: StepBuffers, layer: Layer, stream: torch.Tensor) -> Iterator[tuple[str, torch.Tensor, Exact]]:
    sizes = each.sizes
    q, k, v = layer.qkv.data.split((sizes.q_width, sizes.kv_width, sizes.kv_width))
    normed = partial(_normed, stream, layer.attention_norm)
    yield "q", layer.q.flatten(1), partial(_rotated, sizes, q, normed)
    yield "k", newest(layer.k), partial(_rotated, sizes, k, normed)
    yield "v", newest(layer.v), partial(_product, v, normed)
    yield "attention", layer.attended.flatten(1), partial(_attended, each, layer)
    yield "mid", layer.mid, partial(_added, stream, layer.o.data, layer.attended.flatten(1))
    yield "act", layer.act, partial(_activated, layer.gate_up.data, partial(_normed, layer.mid, layer.feed_norm))
    yield "out", layer.out, partial(_added, layer.mid, layer.down.data, layer.act)


def _wide(tensor: torch.Tensor, on: torch.device) -> torch.Tensor:
    return tensor.to(on).to(torch.float64)


def _embedded(each: StepBuffers, rows: slice, columns: slice, on: torch.device) -> torch.Tensor:
    return _wide(each.embedding.data[each.tokens.data[rows].to(torch.int64), columns], on)


def _normed(stream: torch.Tensor, weights: Operand, rows: slice, on: torch.device) -> torch.Tensor:
    """Rows of the stream over their root mean square, times the norm's weights."""
    numbers = _wide(stream[rows], on)
    return numbers * (numbers.square().mean(1, keepdim=True) + EPSILON).rsqrt() * _wide(weights.data, on)


def _product(
    weights: torch.Tensor, normed: "partial[torch.Tensor]", rows: slice, columns: slice, on: torch.device
) -> torch.Tensor:
    return _times(normed(rows, on), weights[columns])


def _times(left: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """``left`` (rows x k, float64) times weights (n x k) transposed, some of which are converted at a time."""
    return torch.cat([left @ _wide(part, left.device).t() for part in row_blocks(weights)], 1)


def _rotated(
    sizes: Sizes, weights: torch.Tensor, normed: "partial[torch.Tensor]", rows: slice, columns: slice, on: torch.device
) -> torch.Tensor:
    """Of whole heads, since each number is turned with the one half a head away; then the columns asked for."""
    start, stop, _ = columns.indices(len(weights))
    first = start // sizes.head_dim * sizes.head_dim
    last = -(-stop // sizes.head_dim) * sizes.head_dim
    found = _times(normed(rows, on), weights[first:last]).unflatten(1, (-1, sizes.head_dim))
    turn = rotation(sizes, torch.tensor([sizes.position], device=on))[0].unflatten(0, (2, -1))
    low, high = found.tensor_split(2, dim=2)
    turned = torch.cat((low * turn[0] - high * turn[1], high * turn[0] + low * turn[1]), 2)
    return turned.flatten(1)[:, start - first : stop - first]


def _attended(each: StepBuffers, layer: Layer, rows: slice, columns: slice, on: torch.device) -> torch.Tensor:
    """Over the cache as it now stands, new tokens in it: those are stages of their own."""
    sizes, head_dim = each.sizes, each.sizes.head_dim
    decoding = Decoding(each.table.sizes)
    operands: Sequence[Operand] = (each.table, Operand(layer.q), layer.k, layer.v)
    first, last, _ = rows.indices(sizes.batch)
    start, stop, _ = columns.indices(sizes.q_width)
    heads = range(start // head_dim, -(-stop // head_dim))
    found = torch.empty(last - first, len(heads), head_dim, dtype=torch.float64, device=on)
    for sequence in range(first, last):
        for kv_head in sorted({head // sizes.group for head in heads}):
            group = Group(sequence, kv_head)
            keys, values = (cache.worth(*group, on) for cache in (layer.k, layer.v))
            output = decoding.of(decoding.queries(operands, group, on), keys, values)[0]
            for place, head in enumerate(heads):
                if head // sizes.group == kv_head:
                    found[sequence - first, place] = output[head % sizes.group]
    return found.flatten(1)[:, start - heads[0] * head_dim : stop - heads[0] * head_dim]


def _added(
    stream: torch.Tensor, weights: torch.Tensor, left: torch.Tensor, rows: slice, columns: slice, on: torch.device
) -> torch.Tensor:
    return _wide(stream[rows, columns], on) + _times(_wide(left[rows], on), weights[columns])


def _activated(
    weights: torch.Tensor, normed: "partial[torch.Tensor]", rows: slice, columns: slice, on: torch.device
) -> torch.Tensor:
    """silu(g) u; gates are the first half of the rows of weights, the others stand in the same order behind them."""
    left = normed(rows, on)
    gate, up = (_times(left, half[columns]) for half in weights.tensor_split(2))
    return gate * gate.sigmoid() * up
