"""What storing Q, K and V in a format costs: attention of what is stored against that of the numbers before any rounding."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from backends.jax.attention.layout import Layout, operand_names, shapes_of
from backends.jax.attention.reference import Attention
from backends.jax.data import Operand, windows
from backends.jax.widening import wide
from backends.seeds import mixed_seed
from suite.case import Workload
from suite.jobs.attention import Sizes, sizes_of

QUERIES = 64  # of a head, looked at together
HEADS = 4
DRAWN_ELEMENTS = 1 << 24  # at a time
EXACT = ("fp32",)  # drawn as it is stored


def quantisation_error(workload: Workload, layout: Layout, operands: Sequence[Operand], seed: int) -> float | None:
    """norm(O' - O) / norm(O) over sampled rows of O in float64: O of the data as drawn, O' of what is stored.

    ``operands`` are those of the first input set of a kernel that was filled from ``seed``.  Of a forward pass only.  ``None``
    where nothing is rounded, and on data that are all zeros.
    """
    sizes = sizes_of(workload)
    if workload.format in EXACT or sizes.is_backward:
        return None
    data = {name: each.data for name, each in zip(operand_names(sizes), operands, strict=True)}

    def stored(name: str, batch: int, head: int) -> NDArray[np.float64]:
        return wide(np.asarray(layout.head(data[name], batch, head)))

    attention, size, apart = Attention(sizes, layout), 0.0, 0.0
    for batch, head, rows in sampled(sizes):
        heads = {"q": head, "k": head // sizes.group, "v": head // sizes.group}
        found, right = (
            _result(attention, {name: of(name, batch, each) for name, each in heads.items()}, rows)
            for of in (stored, partial(as_drawn, sizes, layout, workload.distribution, seed))
        )
        size += float(np.sum(right**2))
        apart += float(np.sum((found - right) ** 2))
    return float(np.sqrt(apart / size)) if size else None


def sampled(sizes: Sizes) -> list[tuple[int, int, slice]]:
    """Some heads from the first sequence's first to the last one's last, each with queries further on than those before."""
    last, height = sizes.batch * sizes.num_q_heads - 1, min(QUERIES, sizes.q_len)
    found = []
    for number in range(HEADS):
        which, start = number * last // (HEADS - 1), number * (sizes.q_len - height) // (HEADS - 1)
        found.append((*divmod(which, sizes.num_q_heads), slice(start, start + height)))
    return found


def _result(attention: Attention, operands: dict[str, NDArray[np.float64]], rows: slice) -> NDArray[np.float64]:
    block = attention.weighed(operands["q"][rows], operands["k"], rows)
    result: NDArray[np.float64] = block.weights @ operands["v"][block.keys]
    return result


def as_drawn(
    sizes: Sizes, layout: Layout, distribution: str, seed: int, name: str, batch: int, head: int
) -> NDArray[np.float64]:
    """One head of an operand (rows x columns) as it was drawn, some rows at a time with those that lie between them."""
    shape = shapes_of(sizes, layout)[name]
    numbers, columns = layout.numbers(shape, batch, head), shape[3]
    step = max(1, DRAWN_ELEMENTS // (numbers.step * columns))
    parts = [numbers[start : start + step] for start in range(0, len(numbers), step)]
    drawn = windows(
        (math.prod(shape[:3]), columns),
        distribution,
        mixed_seed(seed, 0, operand_names(sizes).index(name)),
        [((part[0], part[-1] + 1), (0, columns)) for part in parts],
    )
    return np.concatenate([np.asarray(each)[:: numbers.step] for each in drawn]).astype(np.float64)
