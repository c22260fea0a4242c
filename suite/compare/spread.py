"""How far two runs lie apart where nothing changed: what two single runs cannot show, and a selftest has measured.

A selftest stores the 95th percentile, over its cases, of how far two measurements of a case differ.  Differences between runs
are taken for normal, so that this is 1.96 of their standard deviations.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from suite.compare.noise import NONE, Noise
from suite.outcome import Bound
from suite.rows import ResultRow
from suite.selftest.record import Repeatability

_DEVIATIONS = 1.96  # of a normal distribution hold 95 % of it

Chip = tuple[str, str]  # uid and backend
Repeats = Mapping[Chip, Repeatability]


class Spread(NamedTuple):
    """``rel`` is the larger of the two devices' repeatabilities, ``None`` where neither has one; ``noise`` of the log ratio."""

    rel: float | None
    noise: Noise


def spread_of(a: ResultRow, b: ResultRow, in_cycles: bool, known: Repeats) -> Spread:
    """How far results of these devices lie apart from run to run, in cycles or in time."""
    rels, variance, degrees = [], 0.0, []
    for row in (a, b):
        repeats = known.get((row.device_uid, row.backend))
        rel = fitting(repeats, row.bound, in_cycles) if repeats else None
        if repeats and rel is not None:
            rels.append(rel)
            variance += (math.log1p(rel) / _DEVIATIONS) ** 2 / 2  # of a difference of two runs: half of it is one run's
            degrees.append(max(1, repeats.cases - 1))
    if not rels:
        return Spread(None, NONE)
    deviation = math.sqrt(variance)
    return Spread(max(rels), Noise(deviation, deviation, min(degrees)))


def fitting(repeats: Repeatability, bound: str | None, in_cycles: bool) -> float | None:
    """The figure of the kind that fits a result; where the selftest had none of that kind, the worse of what it had.

    What arithmetic bounds repeats worse in time than in cycles: then the figure in cycles says too little.
    """
    if bound == Bound.MEMORY and not in_cycles:
        found = repeats.bytes_rel
    elif bound == Bound.COMPUTE and (in_cycles or not repeats.in_cycles):
        found = repeats.cycles_rel
    else:
        found = None
    return repeats.worst_rel if found is None else found
