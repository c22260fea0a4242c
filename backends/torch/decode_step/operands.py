"""The buffers of one input set of a step: a decoder's weights, its caches, and what passes from stage to stage."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch

from backends.torch.data import Operand
from backends.torch.decode.cache import CacheOperand
from backends.torch.decode.stored import DTYPES, storing_of
from backends.torch.decode.table import TableOperand
from backends.torch.decode_step.cache import in_one_piece, newest, put_newest
from backends.torch.decode_step.changes import fingerprint
from backends.torch.decode_step.drawing import (
    ACTIVATED_SIZE,
    EMBEDDED_SIZE,
    NORM_SIZE,
    Drawn,
    NormWeights,
    Output,
    Projections,
    Tokens,
    added_size,
)
from suite.case import Workload
from suite.jobs.decode.formats import UNSCALED
from suite.jobs.decode_step import Sizes, sizes_of

ROTATION_BASE = 500_000.0  # of Llama 3; other models turn by other angles, which takes as long


class Layer(NamedTuple):
    """One layer: its weights, its caches, and what its stages leave.

    ``q`` (batch, 1, query heads, head_dim) is rotated; ``attended`` the same shape; ``mid`` and ``out`` (batch, hidden) are the
    stream behind attention and behind the feed-forward; ``act`` (batch, intermediate) is silu(gate) times up.
    """

    attention_norm: Operand
    qkv: Operand
    k: CacheOperand
    v: CacheOperand
    o: Operand
    feed_norm: Operand
    gate_up: Operand
    down: Operand
    q: torch.Tensor
    attended: torch.Tensor
    mid: torch.Tensor
    act: torch.Tensor
    out: torch.Tensor

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.attention_norm, self.qkv, self.k, self.v, self.o, self.feed_norm, self.gate_up, self.down)

    @property
    def left(self) -> tuple[torch.Tensor, ...]:
        return (self.q, self.attended, self.mid, self.act, self.out)


class StepBuffers(NamedTuple):
    """One input set.

    ``rotation`` (positions, head_dim, fp32) has cosines in its first half of columns and sines in the second, ``positions``
    (batch, int32) where each new token stands, ``embedded`` (batch, hidden) the rows of the embedding.
    """

    sizes: Sizes
    tokens: Operand
    embedding: Operand
    table: TableOperand
    rotation: torch.Tensor
    positions: torch.Tensor
    layers: tuple[Layer, ...]
    final_norm: Operand
    lm_head: Operand
    embedded: torch.Tensor
    logits: torch.Tensor

    @property
    def operands(self) -> tuple[Operand, ...]:
        """In the order in which they are filled; caches need the table before."""
        of_layers = (operand for layer in self.layers for operand in layer.operands)
        return (self.table, self.tokens, self.embedding, *of_layers, self.final_norm, self.lm_head)

    @property
    def caches(self) -> Iterator[CacheOperand]:
        return (cache for layer in self.layers for cache in (layer.k, layer.v))

    @property
    def left(self) -> tuple[torch.Tensor, ...]:
        """What a launch writes, but for the places of new tokens in the caches."""
        return (self.embedded, *(tensor for layer in self.layers for tensor in layer.left), self.logits)

    def fingerprint(self) -> int:
        """Of everything that a launch only reads: see ``changes``."""
        kept = [newest(cache) for cache in self.caches]
        for cache in self.caches:
            put_newest(cache, torch.zeros_like(kept[0]))
        found = fingerprint((*(tensor for each in self.operands for tensor in each.buffers), self.rotation, self.positions))
        for cache, numbers in zip(self.caches, kept, strict=True):
            put_newest(cache, numbers)
        return found


def allocate(workload: Workload, device: torch.device, *, paged: bool) -> StepBuffers:
    """Contiguous buffers, not filled; caches in pages or in one piece."""
    sizes, dtype = sizes_of(workload), DTYPES[workload.format]
    table = TableOperand.of(sizes.cache if paged else in_one_piece(sizes.cache), device)

    def empty(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device=device)

    hidden = sizes.hidden_size
    vector = 1.0 / (NORM_SIZE * math.sqrt(hidden))
    return StepBuffers(
        sizes=sizes,
        tokens=Tokens(torch.empty(sizes.batch, dtype=torch.int32, device=device), vocabulary=sizes.vocabulary),
        embedding=Drawn(empty(sizes.vocabulary, hidden), factor=EMBEDDED_SIZE),
        table=table,
        rotation=rotation(sizes, torch.arange(sizes.kv_len, device=device)).to(torch.float32),
        positions=torch.full((sizes.batch,), sizes.position, dtype=torch.int32, device=device),
        layers=tuple(_layer(workload, table, number) for number in range(sizes.layers)),
        final_norm=NormWeights(empty(hidden)),
        lm_head=Drawn(empty(sizes.vocabulary, hidden), factor=vector),
        embedded=empty(sizes.batch, hidden),
        logits=empty(sizes.batch, sizes.vocabulary),
    )


def _layer(workload: Workload, table: TableOperand, number: int) -> Layer:
    sizes, dtype, device = sizes_of(workload), DTYPES[workload.format], table.data.device
    hidden, wide, batch = sizes.hidden_size, sizes.intermediate_size, sizes.batch

    def empty(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device=device)

    def cache() -> CacheOperand:
        return CacheOperand.of(storing_of(workload.format, UNSCALED), table, sizes.head_dim)

    heads = (batch, 1, sizes.num_q_heads, sizes.head_dim)
    added = [added_size(sizes.layers, 2 * number + place) for place in range(2)]
    return Layer(
        attention_norm=NormWeights(empty(hidden)),
        qkv=Projections(empty(sizes.q_width + 2 * sizes.kv_width, hidden), sizes=sizes),
        k=cache(),
        v=cache(),
        o=Output(empty(hidden, sizes.q_width), sizes=sizes, size=added[0]),
        feed_norm=NormWeights(empty(hidden)),
        gate_up=Drawn(empty(2 * wide, hidden), factor=1.0 / (NORM_SIZE * math.sqrt(hidden))),
        down=Drawn(empty(hidden, wide), factor=added[1] / (ACTIVATED_SIZE * math.sqrt(wide))),
        q=empty(*heads),
        attended=empty(*heads),
        mid=empty(batch, hidden),
        act=empty(batch, wide),
        out=empty(batch, hidden),
    )


def rotation(sizes: Sizes, positions: torch.Tensor) -> torch.Tensor:
    """Cosines and sines of positions (positions, head_dim) in float64: column i turns by base^(-2 i / head_dim) a position."""
    half = sizes.head_dim // 2
    turns = ROTATION_BASE ** (-torch.arange(half, dtype=torch.float64, device=positions.device) / half)
    angles = positions.to(torch.float64)[:, None] * turns
    return torch.cat((angles.cos(), angles.sin()), 1)
