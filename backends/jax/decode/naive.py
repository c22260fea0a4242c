"""Decoding by the book: pages gathered into one piece of memory, then scores, mask, softmax and products.

Every sequence is taken as long as the longest, in whole pages.  Numbers of 8 bits are converted to the type of the queries,
which holds each of them; their scales are multiplied into scores and weights, in fp32.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from backends.jax.decode.filling import Step
from backends.jax.decode.stored import DTYPES
from backends.jax.decode.way import Compute, Way
from backends.jax.target import Target
from suite.case import Workload
from suite.jobs.decode import Sizes
from suite.jobs.decode.cache import SPARE_ENTRIES

PRODUCTS = 2


def compute(step: Step) -> Compute:
    """One step."""
    return Gathered(step)


class Gathered:
    """Scores are (kv_heads, batch, q_len, heads of a group, tokens), tokens of whole pages."""

    def __init__(self, step: Step) -> None:
        self._step, self._sizes = step, step.sizes
        self._pages = max(step.sizes.paging.counts)

    def __call__(self, table: jax.Array, lengths: jax.Array, q: jax.Array, *cache: jax.Array) -> jax.Array:
        sizes = self._sizes
        stored = len(self._step.caches)
        entries = table[:, : self._pages]
        tensors = [self._gather(each, entries).astype(DTYPES[self._step.activation]) for each in cache[:stored]]
        scales = [self._scales(each, entries) for each in cache[stored:]]
        keys, values = tensors[0], tensors[-1][..., : sizes.v_head_dim]
        grouped = q.reshape(sizes.batch, sizes.q_len, sizes.num_kv_heads, sizes.group, sizes.head_dim)
        scores = _product("btkgd,kbsd->kbtgs", grouped, keys) * sizes.head_dim**-0.5
        weights = jax.nn.softmax(self._masked(_scaled(scores, scales[:1]), lengths), axis=-1)
        output = _product("kbtgs,kbsd->btkgd", _scaled(weights, scales[-1:]).astype(values.dtype), values)
        return output.astype(q.dtype).reshape(-1, sizes.v_head_dim)

    def _gather(self, cache: jax.Array, entries: jax.Array) -> jax.Array:
        """One sequence's pages after another (kv_heads, batch, tokens, columns)."""
        found = cache.at[:, entries].get(mode="promise_in_bounds")
        return found.reshape(cache.shape[0], self._sizes.batch, -1, *cache.shape[3:])

    def _scales(self, scales: jax.Array, entries: jax.Array) -> jax.Array:
        """As scores can be multiplied by them: one, or one for each token and head."""
        if scales.ndim == 0:
            return scales
        return self._gather(scales, entries)[:, :, None, None, :]

    def _masked(self, scores: jax.Array, lengths: jax.Array) -> jax.Array:
        """Without what stands behind a sequence's end, and the keys of new tokens after a query's own."""
        token, key = (lax.broadcasted_iota(jnp.int32, scores.shape, axis) for axis in (2, 4))
        seen = lengths[None, :, None, None, None] - (self._sizes.q_len - 1 - token)
        return jnp.where(key < seen, scores, -jnp.inf)


def _scaled(numbers: jax.Array, scales: Sequence[jax.Array]) -> jax.Array:
    return numbers * scales[0] if scales else numbers


def _product(axes: str, left: jax.Array, right: jax.Array) -> jax.Array:
    return jnp.einsum(axes, left, right, preferred_element_type=jnp.float32)


def refuses(workload: Workload, target: Target) -> str | None:
    """Nothing: what XLA compiles everywhere is enough."""
    return None


def columns(sizes: Sizes) -> int:
    """Of the page table."""
    return max(sizes.paging.counts) + SPARE_ENTRIES


WAY = Way(
    refuses,
    compute,
    columns,
    PRODUCTS,
    "gather, jnp.einsum, jax.nn.softmax, jnp.einsum",
    "gathered into one piece of memory and read again, each sequence as long as the longest: more bytes than a kernel moves "
    "that goes through the page table itself",
)
