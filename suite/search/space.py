"""Which shapes a search may look at, and in what order: the model's best by turns with those of every size, some at random.

A wrong model costs places, not the optimum: two of three go round the strata, bands of size and of K, each of which gives its
best by the model and every third time any of its shapes.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from suite.jobs.shapes import Shape
from suite.search.model import Machine, Rates, Shapes, efficiency, flops
from suite.settings import SearchSettings

Indices = NDArray[np.int64]

ENOUGH = 64  # shapes: a grid with fewer is made finer
FINEST_STEP = 64
SIZE_BANDS, K_BANDS = 6, 3
RANDOM_EVERY = 3
STRATA_TURNS = 2  # for one of the model's best over all: those are as good as alike, and mostly the longest to look at


class Space(NamedTuple):
    """A grid of shapes (m, n, k) with the share of the peak that the model expects of each; ``step`` is that of m and n.

    None asks for more than ``most_flops`` operations, so that one launch does not take the time of hundreds.
    """

    shapes: Shapes
    expected: Rates
    step: int
    most_flops: float


def space(
    settings: SearchSettings, machine: Machine, element_bytes: tuple[float, float], most_flops: float, depth: int = 1
) -> Space:
    """The shapes up to the largest sizes that ask for at most ``most_flops``; the smallest shape where none does.

    The step is halved until there are enough: a device that only small shapes suit would have none to choose from.  K stays a
    multiple of ``depth``, of which ``settings.step`` is one: operands that share a scale along K exist for no other.
    """
    step = settings.step
    shapes = _grid(settings, step, most_flops, depth)
    while np.count_nonzero(flops(shapes) <= most_flops) < ENOUGH and step // 2 >= FINEST_STEP:
        step //= 2
        shapes = _grid(settings, step, most_flops, depth)
    short = flops(shapes) <= most_flops
    kept = shapes[short] if short.any() else shapes[:1]
    return Space(kept, efficiency(kept, machine, *element_bytes), step, most_flops)


def candidates(found: Space, first: Sequence[Shape], seed: int) -> Iterator[Shape]:
    """Every shape once, what is worth an early look first; before all, those of ``first`` that are short enough."""
    draw = random.Random(seed)
    ranked = np.argsort(-found.expected, kind="stable").tolist()
    turns = _strata_in_turns(found, draw)
    order = chain.from_iterable(zip_longest(ranked, *[turns] * STRATA_TURNS))
    shapes = (Shape(*map(int, found.shapes[index])) for index in order if index is not None)
    short = (shape for shape in first if shape.flops <= found.most_flops)
    seen: set[Shape] = set()
    for shape in chain(short, shapes):
        if shape not in seen:
            seen.add(shape)
            yield shape


def _grid(settings: SearchSettings, step: int, most_flops: float, depth: int) -> Shapes:
    """Multiples of ``step``, along K of the next multiple of ``depth``; axes end where the other two at their least would ask
    for too much.
    """
    k_step = -(-step // depth) * depth
    axes = []
    for size, own, others in (
        (settings.m, step, step * k_step),
        (settings.n, step, step * k_step),
        (settings.k, k_step, step**2),
    ):
        axes.append(np.arange(own, int(min(size, max(most_flops / (2.0 * others), own))) + 1, own))
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3).astype(np.int64)


def _strata_in_turns(found: Space, draw: random.Random) -> Iterator[int]:
    """One shape of every stratum, then the next of each; every third of a stratum is any of it."""
    queues = [_mixed(members, found.expected, draw) for members in _strata(found.shapes)]
    for turn in zip_longest(*queues):
        yield from (index for index in turn if index is not None)


def _strata(shapes: Shapes) -> list[Indices]:
    """Indices of shapes by bands of size, each by bands of K: as many in each as there are."""
    by_size = np.argsort(np.prod(shapes.astype(np.float64), axis=1), kind="stable")
    bands = (band[np.argsort(shapes[band, 2], kind="stable")] for band in np.array_split(by_size, SIZE_BANDS))
    return [stratum for band in bands for stratum in np.array_split(band, K_BANDS) if stratum.size]


def _mixed(members: Indices, expected: Rates, draw: random.Random) -> Iterator[int]:
    """The members of a stratum, each once: the model's best first, at random every third time."""
    left = members[np.argsort(-expected[members], kind="stable")].tolist()
    number = 0
    while left:
        number += 1
        yield left.pop(draw.randrange(len(left)) if number % RANDOM_EVERY == 0 else 0)
