"""The baseline: torch's scaled_dot_product_attention, each backend pinned, on keys and values that lie in one piece.

They are copied out of their pages after each refill, which is not timed: no page table costs these launches anything.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from backends.torch.attention import sdpa
from backends.torch.decode.cache import CacheOperand
from backends.torch.decode.operands import Buffers
from backends.torch.decode.stored import as_bytes
from backends.torch.decode.way import Task, Way
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Workload
from suite.jobs.attention.sizes import FORWARD, FULL
from suite.jobs.attention.sizes import Sizes as AttentionSizes
from suite.jobs.attention.sizes import params_of as attention_params
from suite.jobs.decode import FORMATS, Sizes, sizes_of
from suite.jobs.decode.job import separate_bytes_of
from suite.jobs.emulation import TRAFFIC_BYTES

NAMES = ("library_math", "library_flash", "library_cudnn")


class OnePiece:
    """K and V of one input set, (batch, kv_heads, kv_len, columns)."""

    def __init__(self, sizes: Sizes, each: Buffers) -> None:
        self._sizes, self._buffers = sizes, each
        self.k = self._empty(each.k)
        self.v = self.k[..., : sizes.v_head_dim] if each.v is each.k else self._empty(each.v)

    def renew(self) -> None:
        """From the pages as they now are, sequence by sequence."""
        for sequence in range(self._sizes.batch):
            self._copy(self._buffers.k, self.k, sequence)
            if self._buffers.v is not self._buffers.k:
                self._copy(self._buffers.v, self.v, sequence)

    def _empty(self, cache: CacheOperand) -> torch.Tensor:
        shape = (self._sizes.batch, self._sizes.num_kv_heads, self._sizes.kv_len, cache.data.shape[3])
        return torch.empty(shape, dtype=cache.data.dtype, device=cache.data.device)

    def _copy(self, cache: CacheOperand, into: torch.Tensor, sequence: int) -> None:
        pages = as_bytes(cache.data)[cache.table.entries(sequence)].transpose(0, 1)
        as_bytes(into)[sequence].copy_(pages.flatten(1, 2)[:, : self._sizes.kv_len])


def refuses(name: str, workload: Workload, target: Target) -> str | None:
    """By what these calls are known not to have, then by torch's own choice for tensors of these sizes."""
    backend, sizes = sdpa.BACKENDS[name], sizes_of(workload)
    if target.kind not in backend.kinds:
        return f"{name} is not on a {target.kind.upper()}: torch has it for {' and '.join(backend.kinds).upper()}"
    if FORMATS[workload.format].is_quantised:
        return f"scaled_dot_product_attention takes no {workload.format}; naive, triton and triton_tuned do"
    if sizes.is_ragged:
        return (
            "scaled_dot_product_attention takes sequences of one length; naive, flashinfer, triton and triton_tuned take others"
        )
    if sizes.q_len > 1:
        return (
            "scaled_dot_product_attention puts the first of several new tokens at the first key; naive and triton at the last"
        )
    return sdpa.not_chosen(backend, name, _as_attention(workload, sizes), target)


def make(name: str, task: Task) -> Made:
    """Launches that return O in a buffer of torch's."""
    backend = sdpa.BACKENDS[name]
    pieces = [OnePiece(task.sizes, each) for each in task.buffers]
    bound: Callable[..., Any] = partial(_launch, backend.chosen, task.sizes.group > 1)
    moved = separate_bytes_of(task.workload)
    facts = {
        "call": "torch.nn.functional.scaled_dot_product_attention",
        "library": backend.library,
        "pinned": backend.chosen.name,
        "cache_layout": "in one piece: batch, KV heads, tokens, columns; no page table is read",
        **({TRAFFIC_BYTES: moved.total - moved.table} if task.sizes.shared_prefix else {}),
    }
    queries = [each.q.data.transpose(1, 2) for each in task.buffers]
    launches = [partial(bound, q, piece) for q, piece in zip(queries, pieces, strict=True)]
    return Made(launches, facts, returns=True, renewals=[piece.renew for piece in pieces])


def _launch(chosen: SDPBackend, grouped: bool, q: torch.Tensor, piece: OnePiece) -> tuple[torch.Tensor]:
    """``q`` (batch, query heads, 1, columns)."""
    with sdpa_kernel(chosen):
        found: torch.Tensor = torch.nn.functional.scaled_dot_product_attention(q, piece.k, piece.v, enable_gqa=grouped)
    return (found.transpose(1, 2),)


def _as_attention(workload: Workload, sizes: Sizes) -> Workload:
    """The same without pages, as a workload of the attention job."""
    heads = (sizes.num_q_heads, sizes.num_kv_heads)
    same = AttentionSizes(FORWARD, sizes.batch, *heads, 1, sizes.kv_len, sizes.head_dim, sizes.v_head_dim, FULL)
    return Workload("attention", workload.format, attention_params(same), workload.distribution)


def way(name: str) -> Way:
    """The way through one of ``NAMES``."""
    return Way(partial(refuses, name), partial(make, name))
