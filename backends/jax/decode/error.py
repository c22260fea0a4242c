"""What storing K and V in a format costs: decoding of what is stored against that of the numbers before any rounding."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backends.jax.data import Operand
from backends.jax.decode.filling import Step, as_drawn
from backends.jax.decode.reference import Decoding, Stored
from suite.jobs.decode import Sizes

SEQUENCES = 4
EXACT = ("fp32",)  # drawn as it is stored


def quantisation_error(step: Step, operands: Sequence[Operand], distribution: str, seed: int) -> float | None:
    """norm(O' - O) / norm(O) over sampled heads of sequences in float64: O of the cache as drawn, O' of what is stored.

    Queries are those that are stored: their type is the model's, not the cache's.  ``None`` where nothing is rounded, and on
    data that are all zeros.
    """
    if step.storing.format in EXACT:
        return None
    decoding, sizes = Decoding(step), step.sizes
    table, q = np.asarray(operands[0].data), np.asarray(operands[2].data)
    stored = [Stored(each.data, each.scale) for each in operands[3:]]
    groups = sampled(sizes)
    tokens = [sizes.tokens[sequence] for sequence, _ in groups]
    places = np.concatenate(
        [_places(sizes, table[sequence], count) for (sequence, _), count in zip(groups, tokens, strict=True)]
    )
    kv_heads = np.repeat([kv_head for _, kv_head in groups], tokens)
    exact = [each.astype(np.float64) for each in as_drawn(step, operands, distribution, seed, kv_heads, places)]
    size = apart = 0.0
    for (sequence, kv_head), end, count in zip(groups, np.cumsum(tokens), tokens, strict=True):
        queries = decoding.queries(q, sequence, kv_head)
        found = decoding.of(queries, [decoding.worth(each, table, sequence, kv_head) for each in stored])
        right = decoding.of(queries, [each[end - count : end] for each in exact])
        size += float(np.sum(right**2))
        apart += float(np.sum((found - right) ** 2))
    return float(np.sqrt(apart / size)) if size else None


def sampled(sizes: Sizes) -> list[tuple[int, int]]:
    """Some sequences from the first to the last, each with another KV head."""
    count = min(SEQUENCES, sizes.batch)
    chosen = dict.fromkeys(place * (sizes.batch - 1) // max(1, count - 1) for place in range(count))
    return [(each, place % sizes.num_kv_heads) for place, each in enumerate(chosen)]


def _places(sizes: Sizes, pages: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    """Where a sequence's tokens stand in the cache."""
    tokens = np.arange(count, dtype=np.int64)
    places: NDArray[np.int64] = pages[tokens // sizes.page_size].astype(np.int64) * sizes.page_size + tokens % sizes.page_size
    return places
