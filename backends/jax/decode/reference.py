"""What decoding should give: in float64, of queries and cache as they are stored, one KV head of a sequence at a time."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from backends.jax.attention.rowwise import Part, Rows, Rowwise, norms_of
from backends.jax.data import Operand
from backends.jax.decode.filling import Step
from backends.jax.widening import wide


class Stored(NamedTuple):
    """One tensor of the cache, and its scales where it has some; on the host, where much of it is looked at."""

    data: NDArray[Any] | jax.Array
    scales: NDArray[np.float32] | jax.Array | None


class Decoding(Rowwise):
    """A row of one head is eight elements or more, which are never all near 0 by chance."""

    def __init__(self, step: Step) -> None:
        self._step, self._sizes = step, step.sizes

    @property
    def shape(self) -> tuple[int, int]:
        batch, q_len, heads = self._step.rows
        return batch * q_len * heads, self._sizes.v_head_dim

    @property
    def part_bytes(self) -> int:
        sizes = self._sizes
        of_token = 2 * sizes.heads.stored_columns + 3 * sizes.q_len * sizes.group
        return 8 * max(sizes.tokens) * of_token

    def parts(self, operands: Sequence[Operand]) -> Sequence[Part]:
        table, _, q = (np.asarray(each.data) for each in operands[:3])
        caches = [
            Stored(np.asarray(each.data), None if each.scale is None else np.asarray(each.scale)) for each in operands[3:]
        ]
        return [
            partial(self._output, table, q, caches, sequence, kv_head)
            for sequence in range(self._sizes.batch)
            for kv_head in range(self._sizes.num_kv_heads)
        ]

    def _output(
        self, table: NDArray[np.int32], q: NDArray[Any], caches: Sequence[Stored], sequence: int, kv_head: int
    ) -> Iterator[Rows]:
        result = self.of(self.queries(q, sequence, kv_head), [self.worth(each, table, sequence, kv_head) for each in caches])
        yield Rows(self._numbers(sequence, self._heads(kv_head)), result, norms_of(result))

    def of(self, queries: NDArray[np.float64], caches: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Queries of one sequence's heads (queries x columns) over one KV head's keys, and values (tokens x columns)."""
        sizes, keys = self._sizes, caches[0]
        values = keys[:, : sizes.v_head_dim] if sizes.has_shared_values else caches[1]
        scores = queries @ keys.T
        scores *= sizes.head_dim**-0.5
        self._mask(scores.reshape(sizes.q_len, sizes.group, len(keys)))
        scores -= scores.max(1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(1, keepdims=True)
        result: NDArray[np.float64] = scores @ values
        return result

    def queries(self, q: NDArray[Any], sequence: int, kv_head: int) -> NDArray[np.float64]:
        """Those of one sequence that share a KV head (new tokens and heads x columns)."""
        return wide(np.ascontiguousarray(q[sequence, :, self._heads(kv_head)])).reshape(-1, self._sizes.head_dim)

    def _heads(self, kv_head: int) -> slice:
        return slice(kv_head * self._sizes.group, (kv_head + 1) * self._sizes.group)

    def _numbers(self, sequence: int, heads: slice) -> NDArray[np.int64]:
        """Which rows of the output are a sequence's queries of some heads."""
        rows = np.arange(np.prod(self._step.rows), dtype=np.int64).reshape(self._step.rows)
        return rows[sequence, :, heads].ravel()

    def worth(self, cache: Stored, table: NDArray[np.int32], sequence: int, kv_head: int) -> NDArray[np.float64]:
        """One sequence's numbers of a head (tokens x columns)."""
        length = self._sizes.tokens[sequence]
        pages = table[sequence, : -(-length // self._sizes.page_size)]
        codes = np.asarray(cache.data[kv_head, pages])
        numbers = wide(codes.reshape(-1, codes.shape[2])[:length])
        if cache.scales is None:
            return numbers
        if cache.scales.ndim == 0:
            return numbers * float(cache.scales)
        scales: NDArray[np.float64] = np.asarray(cache.scales[kv_head, pages]).reshape(-1)[:length, None].astype(np.float64)
        return numbers * scales

    def _mask(self, scores: NDArray[np.float64]) -> None:
        """(q_len, heads, keys): a new token does not see the keys of those after it."""
        q_len, _, length = scores.shape
        for token in range(q_len - 1):
            scores[token, :, length - (q_len - 1 - token) :] = -np.inf
