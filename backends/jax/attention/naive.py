"""Attention by the book: scores, mask, softmax and products one after the other, which XLA fuses as it sees fit.

Products take the operands' type and sum in fp32, which scores and softmax are kept in.
"""

import jax
import jax.numpy as jnp
from jax import lax

from backends.jax.attention.layout import HEADS_FIRST
from backends.jax.attention.way import Compute, Results, Way, products_of
from backends.jax.target import Target
from suite.case import Workload
from suite.jobs.attention import Sizes


def compute(sizes: Sizes) -> Compute:
    """Forward or backward."""
    return Naive(sizes).backward if sizes.is_backward else Naive(sizes).forward


class Naive:
    """Operands are (batch, heads, rows, columns); the queries of a group are taken one below the other."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._scale = sizes.head_dim**-0.5

    def forward(self, q: jax.Array, k: jax.Array, v: jax.Array) -> Results:
        weights = self._weights(self._by_kv_head(q), k).astype(v.dtype)
        return (_product("bkts,bksd->bktd", weights, v).astype(v.dtype),)

    def backward(self, q: jax.Array, k: jax.Array, v: jax.Array, do: jax.Array) -> Results:
        """dV = P^T dO; dS = P (dP - sum(P dP)) with dP = dO V^T; dQ = dS K, dK = dS^T Q, both times the scale."""
        queries, above = self._by_kv_head(q), self._by_kv_head(do)
        weights = self._weights(queries, k)
        dv = _product("bkts,bktd->bksd", weights.astype(v.dtype), above)
        slopes = _product("bktd,bksd->bkts", above, v)
        slopes = weights * (slopes - jnp.sum(weights * slopes, axis=-1, keepdims=True)) * self._scale
        slopes = slopes.astype(q.dtype)
        dq = _product("bkts,bksd->bktd", slopes, k)
        dk = _product("bkts,bktd->bksd", slopes, queries)
        return dq.astype(q.dtype), dk.astype(k.dtype), dv.astype(v.dtype)

    def _weights(self, queries: jax.Array, k: jax.Array) -> jax.Array:
        """(batch, heads of keys, queries of a group, keys) in fp32."""
        scores = _product("bktd,bksd->bkts", queries, k) * self._scale
        return jax.nn.softmax(self._masked(scores), axis=-1)

    def _masked(self, scores: jax.Array) -> jax.Array:
        first, last = self._sizes.bounds
        if first is None and last is None:
            return scores
        query, key = (lax.broadcasted_iota(jnp.int32, scores.shape, axis) for axis in (2, 3))
        apart = key - query % self._sizes.q_len
        seen = jnp.ones(scores.shape, bool) if last is None else apart <= last
        if first is not None:
            seen &= apart >= first
        return jnp.where(seen, scores, -jnp.inf)

    def _by_kv_head(self, rows: jax.Array) -> jax.Array:
        return rows.reshape(self._sizes.batch, self._sizes.num_kv_heads, -1, rows.shape[3])


def _product(axes: str, left: jax.Array, right: jax.Array) -> jax.Array:
    return jnp.einsum(axes, left, right, preferred_element_type=jnp.float32)


def refuses(workload: Workload, target: Target) -> str | None:
    """Nothing: what XLA compiles everywhere is enough."""
    return None


WAY = Way(HEADS_FIRST, refuses, compute, products_of, "jnp.einsum, jax.nn.softmax, jnp.einsum")
