"""Every rank's output reduced to what a check needs, and the same of what it should be, on the host.

Both go through a row in the same blocks.  What should stand there repeats: one block of it is drawn and compared with all.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from backends.jax.collective.orders import Row
from backends.jax.collective.programs import ROOT
from backends.seeds import mixed_seed
from suite.collectives.data import PERIOD, Inputs, repeating
from suite.collectives.part import Part

BLOCK_ELEMENTS = 8 * PERIOD  # at a time in float64; whole periods, so that all blocks of a stretch should hold the same
Numbers = NDArray[np.float64]


def observed(received: NDArray[np.generic], inputs: Inputs, slices: Sequence[Part], seed: int) -> Row:
    """What stands in ``received`` now."""
    projection, nonfinite = 0.0, 0
    for stretch in repeating(inputs.message):
        for part in blocks(stretch):
            wide = _wide(received, part)
            nonfinite += int((~np.isfinite(wide)).sum())
            projection += float(wide @ _signs(part, seed))
    return Row(tuple(_wide(received, part) for part in slices), projection, nonfinite)


def expected(inputs: Inputs, rank: int, slices: Sequence[Part], seed: int) -> Row:
    """What should stand there, by arithmetic alone."""
    projection = 0.0
    for part, values in _expected_blocks(inputs, rank):
        projection += float(values @ _signs(part, seed))
    return Row(tuple(inputs.received(rank, part, ROOT) for part in slices), projection)


def count_wrong(received: NDArray[np.generic], inputs: Inputs, rank: int) -> int:
    """Elements of the whole that are not exactly what they should be; NaN never is."""
    return sum(int((_wide(received, part) != values).sum()) for part, values in _expected_blocks(inputs, rank))


def blocks(stretch: Part) -> Iterator[Part]:
    """Neighbouring parts of a stretch, each small enough for a copy in float64."""
    for start in range(stretch.start, stretch.stop, BLOCK_ELEMENTS):
        yield Part(start, min(BLOCK_ELEMENTS, stretch.stop - start))


def _expected_blocks(inputs: Inputs, rank: int) -> Iterator[tuple[Part, Numbers]]:
    for stretch in repeating(inputs.message):
        first = Part(stretch.start, min(BLOCK_ELEMENTS, stretch.elements))
        values = inputs.received(rank, first, ROOT)
        for part in blocks(stretch):
            yield part, values[: part.elements]


def _wide(received: NDArray[np.generic], part: Part) -> Numbers:
    return received[part.start : part.stop].astype(np.float64)


def _signs(part: Part, seed: int) -> Numbers:
    """+1 and -1, the same for an output and for what it should be."""
    drawn = np.random.default_rng(mixed_seed(seed, part.start)).integers(0, 2, part.elements)
    signs: Numbers = drawn.astype(np.float64) * 2 - 1
    return signs
