"""What attention and its gradients should be: in float64, of the operands as they are stored, without all scores at once."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from backends.jax.attention.layout import Layout, operand_names, output_shape, places_of, width_of
from backends.jax.attention.rowwise import Part, Rows, Rowwise, norms_of
from backends.jax.data import Operand
from backends.jax.widening import wide
from suite.jobs.attention import Sizes

# A result may be near zero by chance, and its rounding is that of the terms which cancel: the largest norm among so many rows
# of its head on either side says how large a row is meant to be.
NEIGHBOURS = 4
BLOCK_SCORES = 1 << 20  # of one block of queries; a few arrays of them are held at a time
BLOCK_ARRAYS = 4


class Weighed(NamedTuple):
    """A block of queries of one head, the keys that some of them see, and the weights (queries x keys)."""

    rows: slice
    keys: slice
    weights: NDArray[np.float64]


class Attention(Rowwise):
    """A row of one head is eight elements or more, which are never all near 0 by chance."""

    def __init__(self, sizes: Sizes, layout: Layout) -> None:
        self._sizes, self._layout = sizes, layout
        self._places = places_of(sizes, layout)

    @property
    def shape(self) -> tuple[int, int]:
        return output_shape(self._sizes, self._layout)

    @property
    def part_bytes(self) -> int:
        sizes = self._sizes
        of_heads = (sizes.q_len + sizes.kv_len) * (sizes.head_dim + sizes.v_head_dim) * (2 if sizes.is_backward else 1)
        return 8 * (of_heads + BLOCK_ARRAYS * max(BLOCK_SCORES, sizes.kv_len))

    def parts(self, operands: Sequence[Operand]) -> Sequence[Part]:
        """Head by head; backward a head of keys with the query heads that share it."""
        stored = {name: np.asarray(each.data) for name, each in zip(operand_names(self._sizes), operands, strict=True)}
        heads = self._sizes.num_kv_heads if self._sizes.is_backward else self._sizes.num_q_heads
        compute = self._gradients if self._sizes.is_backward else self._output
        return [partial(compute, stored, batch, head) for batch in range(self._sizes.batch) for head in range(heads)]

    def _output(self, stored: dict[str, NDArray[Any]], batch: int, head: int) -> Iterator[Rows]:
        queries = self._worth(stored["q"], batch, head)
        keys, values = (self._worth(stored[name], batch, head // self._sizes.group) for name in "kv")
        found = np.empty((self._sizes.q_len, self._sizes.v_head_dim))
        for block in self._blocks(queries, keys):
            np.matmul(block.weights, values[block.keys], out=found[block.rows])
        yield self._rows("o", batch, head, found)

    def _gradients(self, stored: dict[str, NDArray[Any]], batch: int, kv_head: int) -> Iterator[Rows]:
        keys, values = (self._worth(stored[name], batch, kv_head) for name in "kv")
        dk, dv = np.zeros_like(keys), np.zeros_like(values)
        for head in range(kv_head * self._sizes.group, (kv_head + 1) * self._sizes.group):
            queries, above = (self._worth(stored[name], batch, head) for name in "qo")
            dq = np.zeros_like(queries)
            for block in self._blocks(queries, keys):
                slopes = above[block.rows] @ values[block.keys].T
                slopes -= np.einsum("qk,qk->q", slopes, block.weights)[:, None]
                slopes *= block.weights
                slopes *= self._scale
                dq[block.rows] = slopes @ keys[block.keys]
                dk[block.keys] += slopes.T @ queries[block.rows]
                dv[block.keys] += block.weights.T @ above[block.rows]
            yield self._rows("q", batch, head, dq)
        yield self._rows("k", batch, kv_head, dk)
        yield self._rows("v", batch, kv_head, dv)

    def _rows(self, name: str, batch: int, head: int, result: NDArray[np.float64]) -> Rows:
        """One head of a result."""
        width = width_of(self._sizes)
        rows = result.reshape(-1, width)
        norms = largest_near(norms_of(rows), result.shape[1] // width)
        return Rows(self._layout.head(self._places[name], batch, head).ravel(), rows, norms)

    def _worth(self, array: NDArray[Any], batch: int, head: int) -> NDArray[np.float64]:
        return wide(np.ascontiguousarray(self._layout.head(array, batch, head)))

    def _blocks(self, queries: NDArray[np.float64], keys: NDArray[np.float64]) -> Iterator[Weighed]:
        """As many queries at a time as keep their scores small."""
        step = max(1, BLOCK_SCORES // self._sizes.kv_len)
        for start in range(0, self._sizes.q_len, step):
            rows = slice(start, min(start + step, self._sizes.q_len))
            yield self.weighed(queries[rows], keys, rows)

    def weighed(self, queries: NDArray[np.float64], keys: NDArray[np.float64], rows: slice) -> Weighed:
        """Some queries of one head, which are its ``rows``, with all of its keys (rows x columns each)."""
        seen = self._seen(rows)
        scores = queries @ keys[seen].T
        scores *= self._scale
        self._mask(scores, rows.start, seen.start)
        scores -= scores.max(1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(1, keepdims=True)
        return Weighed(rows, seen, scores)

    def _seen(self, rows: slice) -> slice:
        """Keys that some of the queries see."""
        first, last = self._sizes.bounds
        low = 0 if first is None else max(0, rows.start + first)
        high = self._sizes.kv_len if last is None else min(self._sizes.kv_len, rows.stop + last)
        return slice(low, max(low, high))

    def _mask(self, scores: NDArray[np.float64], query: int, key: int) -> None:
        """Minus infinity where a query, of those from ``query`` on, does not see a key, of those from ``key`` on."""
        first, last = self._sizes.bounds
        if first is None and last is None:
            return
        rows, columns = (np.arange(size) for size in scores.shape)
        apart = (columns + key)[None, :] - (rows + query)[:, None]
        if last is not None:
            scores[apart > last] = -np.inf
        if first is not None:
            scores[apart < first] = -np.inf

    @property
    def _scale(self) -> float:
        return float(self._sizes.head_dim**-0.5)


def largest_near(norms: NDArray[np.float64], parts: int) -> NDArray[np.float64]:
    """The largest within ``NEIGHBOURS`` rows on either side, of rows that have so many parts each."""
    reach = NEIGHBOURS * parts
    largest: NDArray[np.float64] = sliding_window_view(np.pad(norms, reach), 2 * reach + 1).max(1)
    return largest
