"""Decoding by the book: pages gathered into one piece of memory, converted, then scores, softmax and products one by one.

All of it in fp32, each step written to memory whole and every sequence as long as the longest: what a kernel saves that goes
through the page table itself.  What it moves is counted (``traffic_bytes``).
"""

from functools import partial

import torch

from backends.host.cpuinfo import memory_available_bytes
from backends.torch.decode.cache import CacheOperand
from backends.torch.decode.operands import Buffers
from backends.torch.decode.stored import DTYPES, as_bytes
from backends.torch.decode.way import Task, Way
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Workload
from suite.gigabytes import gigabytes
from suite.jobs.decode import FORMATS, activation_of, scaling_of
from suite.jobs.decode.cache import SCALE_BYTES
from suite.jobs.decode.job import bytes_of
from suite.jobs.emulation import EXECUTED_PIPE, TRAFFIC_BYTES

WIDE = torch.float32
# How often what is gathered is written or read: as stored by the gathering (both) and the conversion, in fp32 by that and twice
# more where scales are multiplied in.  What products then read is counted apart: of MLA both of them read the same columns.
STORED_PASSES, WIDE_PASSES, SCALE_PASSES = 3, 1, 2
SCORE_PASSES = 6  # by the first product, the mask (both), the softmax (both), the second product


class Gathered:
    """Buffers of what is gathered, shared by the input sets; ``padded`` tokens of each sequence, whole pages."""

    def __init__(self, task: Task) -> None:
        self.workload, self.sizes = task.workload, task.sizes
        self.first = task.buffers[0]
        self.device = task.target.device
        self.pages = max(self.sizes.paging.counts)
        self.padded = self.pages * self.sizes.page_size
        self._refuse_too_large()
        self.k = self._empty(self.sizes.head_dim)
        self.v = self.k[..., : self.sizes.v_head_dim] if self.sizes.has_shared_values else self._empty(self.sizes.v_head_dim)
        cache = self.first.k.data
        picked = (self.sizes.batch * self.pages, *cache.shape[1:3], max(self.sizes.head_dim, self.sizes.v_head_dim))
        self.picked = torch.empty(picked, dtype=cache.dtype, device=self.device)
        self.scores = torch.empty(self._score_shape, dtype=WIDE, device=self.device)
        self.weights = torch.empty_like(self.scores)
        self.hidden = self._hidden()
        self.scale = self.sizes.head_dim**-0.5

    @property
    def _score_shape(self) -> tuple[int, int, int]:
        rows = self.sizes.q_len * self.sizes.group
        return self.sizes.batch * self.sizes.num_kv_heads, rows, self.padded

    @property
    def tokens(self) -> int:
        """Of all heads, as many as are gathered: whole pages, a shared prefix for every sequence."""
        return self.sizes.batch * self.sizes.num_kv_heads * self.padded

    @property
    def numbers(self) -> int:
        """Of K and V, as many as are gathered."""
        return self.tokens * self.sizes.heads.stored_columns

    @property
    def score_bytes(self) -> int:
        heads, rows, padded = self._score_shape
        return heads * rows * padded * int(WIDE.itemsize)

    @property
    def traffic_bytes(self) -> int:
        """Table, queries and output once; the rest as often as it is written and read."""
        moved, wide = bytes_of(self.workload), int(WIDE.itemsize)
        stored = int(self.first.k.data.dtype.itemsize)
        scaled = SCALE_PASSES * FORMATS[self.workload.format].is_quantised
        gathered = self.numbers * (STORED_PASSES * stored + (WIDE_PASSES + scaled) * wide)
        multiplied = self.tokens * (self.sizes.head_dim + self.sizes.v_head_dim) * wide
        scores = SCORE_PASSES * self.score_bytes
        return moved.total - moved.kv - moved.scales + self._scales_bytes + gathered + multiplied + scores

    @property
    def _scales_bytes(self) -> int:
        """Scales of tokens are gathered as their numbers are; that of a tensor is read once."""
        if scaling_of(self.workload) != "token":
            return bytes_of(self.workload).scales
        return STORED_PASSES * self.tokens * self.sizes.heads.stored_tensors * SCALE_BYTES

    def launch(self, each: Buffers) -> None:
        """O into the buffer of a set."""
        entries = each.table.data[:, : self.pages].reshape(-1)
        keys = self._gather(entries, each.k, self.k)
        values = self.v if each.v is each.k else self._gather(entries, each.v, self.v)
        scores, weights = self.scores, self.weights
        torch.baddbmm(
            scores, self._queries(each.q.data), self._flat(keys).transpose(1, 2), beta=0, alpha=self.scale, out=scores
        )
        self._by_sequence(scores).masked_fill_(self.hidden, float("-inf"))
        torch.softmax(scores, -1, out=weights)
        rows = torch.bmm(weights, self._flat(values))
        each.o.copy_(rows.view(*self._by_group, -1).transpose(1, 2).flatten(2, 3))

    def _gather(self, entries: torch.Tensor, cache: CacheOperand, into: torch.Tensor) -> torch.Tensor:
        """One sequence's pages after another, into (batch, kv_heads, pages, page_size, columns)."""
        picked = self.picked.view(-1)[: len(entries) * cache.data[0].numel()].view(len(entries), *cache.data.shape[1:])
        torch.index_select(as_bytes(cache.data), 0, entries, out=as_bytes(picked))
        into.copy_(picked.unflatten(0, (self.sizes.batch, self.pages)).transpose(1, 2))
        if cache.scales is not None:
            scales = cache.scales
            if scaling_of(self.workload) == "token":
                scales = scales[entries].unflatten(0, (self.sizes.batch, self.pages)).transpose(1, 2)[..., None]
            into.mul_(scales)
        return into

    def _flat(self, gathered: torch.Tensor) -> torch.Tensor:
        """(batch x kv_heads, tokens, columns), a view."""
        return gathered.flatten(2, 3).flatten(0, 1)

    def _queries(self, q: torch.Tensor) -> torch.Tensor:
        """(batch x kv_heads, queries of a group, columns), those of one new token together."""
        grouped = q.unflatten(2, (self.sizes.num_kv_heads, self.sizes.group)).transpose(1, 2)
        return grouped.to(WIDE).reshape(self._score_shape[0], self._score_shape[1], -1)

    @property
    def _by_group(self) -> tuple[int, int, int, int]:
        return self.sizes.batch, self.sizes.num_kv_heads, self.sizes.q_len, self.sizes.group

    def _by_sequence(self, scores: torch.Tensor) -> torch.Tensor:
        return scores.view(*self._by_group, self.padded)

    def _hidden(self) -> torch.Tensor:
        """Which tokens a query does not see: those after it, and what stands behind a sequence's end."""
        lengths = torch.tensor(self.sizes.tokens, device=self.device)
        back = torch.arange(self.sizes.q_len - 1, -1, -1, device=self.device)
        last = (lengths[:, None] - 1 - back[None, :]).view(self.sizes.batch, 1, self.sizes.q_len, 1, 1)
        return torch.arange(self.padded, device=self.device) > last

    def _empty(self, columns: int) -> torch.Tensor:
        shape = (self.sizes.batch, self.sizes.num_kv_heads, self.pages, self.sizes.page_size, columns)
        return torch.empty(shape, dtype=WIDE, device=self.device)

    def _refuse_too_large(self) -> None:
        """A host gives out memory that it does not have, and ends whoever then uses it."""
        needed, free = self.numbers * int(WIDE.itemsize) + 2 * self.score_bytes, memory_available_bytes()
        if self.device.type == "cpu" and needed > free:
            raise MemoryError(
                f"gathered keys and values need {gigabytes(needed)}; {gigabytes(free)} are available; take smaller batches "
                "or kv_lens"
            )


def make(task: Task) -> Made:
    """Launches that share the buffers of what is gathered."""
    gathered = Gathered(task)
    facts = {
        "call": "torch.index_select, torch.baddbmm, torch.softmax, torch.bmm",
        "library": "torch",
        TRAFFIC_BYTES: gathered.traffic_bytes,
        EXECUTED_PIPE: "fp32",
    }
    emulation = "" if task.workload.format == "fp32" else "queries, keys and values converted to fp32, then fp32 products"
    return Made([partial(gathered.launch, each) for each in task.buffers], facts, emulation=emulation)


def refuses(workload: Workload, target: Target) -> str | None:
    """Nothing: what every torch device has is enough."""
    assert activation_of(workload) in DTYPES
    return None


WAY = Way(refuses, make)
