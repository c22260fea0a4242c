"""Sizes of one decoding step: its sequences, their heads and their pages."""

from functools import lru_cache
from typing import Any, NamedTuple

from suite.case import Items, Workload, items
from suite.jobs.decode import cache
from suite.jobs.decode.lengths import lengths
from suite.jobs.decode.pages import Pages, Paging, paged, paging
from suite.jobs.heads import HeadsAxis, Values

LARGEST_BATCH = 4096
LARGEST_LENGTH = 1 << 20
MOST_NEW_TOKENS = 8  # of a sequence in one step; more are a prefill
LARGEST_PAGE = 128
HEAD_DIMS = range(8, 1025, 8)
LENGTHS_SEED = 0  # a step's lengths are part of what it is, and the same wherever it is measured


HEADS = HeadsAxis("decode", HEAD_DIMS, Values.FIRST_OF_KEYS, "32x128, 32/8x128 or 128/1x576/512")


class Sizes(NamedTuple):
    """``batch`` sequences of ``kv_len`` tokens in the mean, the latest ``q_len`` of which are the queries.

    ``lengths`` is how the sequences' lengths are spread; ``page_order`` how their pages lie; all begin with the same
    ``shared_prefix`` tokens.  A ``v_head_dim`` below ``head_dim`` is MLA: the values are the first columns of the keys.
    """

    batch: int
    num_q_heads: int
    num_kv_heads: int
    q_len: int
    kv_len: int
    head_dim: int
    v_head_dim: int
    page_size: int
    page_order: str = "random"
    lengths: str = "equal"
    shared_prefix: int = 0

    @property
    def group(self) -> int:
        """Query heads that share a head of K and V."""
        return self.num_q_heads // self.num_kv_heads

    @property
    def has_shared_values(self) -> bool:
        return self.v_head_dim < self.head_dim

    @property
    def heads(self) -> cache.Heads:
        """As the counting of bytes wants them."""
        tail = self.head_dim - self.v_head_dim
        return cache.Heads(self.num_q_heads, self.num_kv_heads, self.v_head_dim, tail, self.has_shared_values)

    @property
    def tokens(self) -> tuple[int, ...]:
        """Of each sequence."""
        return _tokens(self.batch, self.kv_len, self.lengths)

    @property
    def is_ragged(self) -> bool:
        return min(self.tokens) != max(self.tokens)

    @property
    def paging(self) -> Paging:
        """How many pages there are, without a table."""
        return paging(self.tokens, self.page_size, self.shared_prefix)

    def pages(self, seed: int) -> Pages:
        """A table of pages, drawn by ``seed``."""
        return paged(self.tokens, self.page_size, shared_tokens=self.shared_prefix, order=self.page_order, seed=seed)


@lru_cache(maxsize=1024)
def _tokens(batch: int, kv_len: int, distribution: str) -> tuple[int, ...]:
    return lengths(batch, kv_len, distribution, LENGTHS_SEED)


def params_of(sizes: Sizes) -> Items:
    """As a workload has them; a shared prefix only where there is one."""
    return items({name: value for name, value in sizes._asdict().items() if name != "shared_prefix" or value})


def sizes_of(workload: Workload) -> Sizes:
    """Of a workload of the decode job."""
    params: dict[str, Any] = dict(workload.params)
    return Sizes(**{name: params[name] for name in Sizes._fields if name in params})
