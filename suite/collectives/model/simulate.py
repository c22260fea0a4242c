"""Collectives in worlds that nobody here has, up to 16,384 ranks, in a band that widens away from what was measured.

A prediction is evidence ``modelled`` and says how far it reaches beyond the measured: nothing of a network that was never
crossed is in a fit, and published simulators are 10 to 20 % off within 8 GPUs already.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from suite.collectives.bandwidth import busbw_bytes_s
from suite.collectives.model.alpha_beta import Fit
from suite.collectives.model.nccl import Communicator, Prediction, cheapest, rebuilt
from suite.collectives.names import Algo, Op
from suite.collectives.tree import LARGEST_WORLD
from suite.errors import UsageError
from suite.outcome import Evidence

LEAST_ERROR = 0.15  # the middle of what published simulators are off where they were fitted


class Simulated(NamedTuple):
    """One predicted collective, seconds; ``extrapolation`` is this world over the largest measured one."""

    algo: Algo
    ranks: int
    message_bytes: int
    time_s: float
    low_s: float
    high_s: float
    extrapolation: float
    op: Op = Op.ALL_REDUCE
    evidence: Evidence = Evidence.MODELLED

    @property
    def busbw_bytes_s(self) -> float:
        """Bus bandwidth of the predicted time, bytes per second."""
        return busbw_bytes_s(self.op, self.ranks, self.message_bytes, self.time_s)


def simulated(
    fits: Mapping[Algo, Fit], worlds: Sequence[int], sizes: Sequence[int], errors: Mapping[Algo, float]
) -> Iterator[Simulated]:
    """Predict every algorithm that has a fit; ``errors`` are what it was off by when the largest world was held out.

    Where the fit itself is known less well than that, its own error stands instead.
    """
    for ranks in worlds:
        _check(ranks)
        for algo, found in fits.items():
            for size in sizes:
                error = max(errors.get(algo, 0.0), found.error(found.largest_ranks, size))
                half_width = max(band(ranks, found.largest_ranks, error), found.error(ranks, size))
                yield _banded(algo, ranks, size, found.time_s(ranks, size), found.largest_ranks, half_width, found.op)


def simulated_library(
    communicator_of: Callable[[int], Communicator],
    worlds: Sequence[int],
    sizes: Sequence[int],
    measured_ranks: int,
    error: float,
) -> Iterator[Simulated]:
    """Predict what NCCL's own model would choose in each world.

    ``error`` is what that model was off by in the largest world where it stood beside a measurement, ``measured_ranks``.
    """
    for ranks in worlds:
        _check(ranks)
        communicator = communicator_of(ranks)
        table = rebuilt(communicator)
        for size in sizes:
            chosen: Prediction = cheapest(table, Op.ALL_REDUCE, size, communicator)
            yield _banded(chosen.algo, ranks, size, chosen.time_s, measured_ranks, band(ranks, measured_ranks, error))


def band(ranks: int, measured_ranks: int, error: float) -> float:
    """Relative half-width: the known error, 15 % at least, and as much again for every doubling beyond the measured."""
    return max(error, LEAST_ERROR) * (1 + math.log2(max(1.0, ranks / measured_ranks)))


def _banded(
    algo: Algo, ranks: int, size: int, time_s: float, measured_ranks: int, half_width: float, op: Op = Op.ALL_REDUCE
) -> Simulated:
    """Times are off by factors, so that the band is even on a logarithmic axis."""
    factor = 1 + half_width
    return Simulated(algo, ranks, size, time_s, time_s / factor, time_s * factor, ranks / measured_ranks, op)


def _check(ranks: int) -> None:
    if not 2 <= ranks <= LARGEST_WORLD:
        raise UsageError(f"a simulated world of {ranks} ranks; it goes from 2 to {LARGEST_WORLD}")
