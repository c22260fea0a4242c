"""Result rows of the collective job as curves: the times of one operation by one algorithm, over sizes and worlds.

Nothing that differs in evidence, transport or in who computes it is ever on one curve.  Ranks that share a device have no
bandwidth, and are on none.  What is in doubt stays on its curve and is marked; see ``Point.counts`` for what it decides.

A row does not say that its ranks shared cores: whoever has the store asks it (see ``marked``) and hands in what it said.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from suite.collectives.bandwidth import busbw_bytes_s
from suite.collectives.choice import LIBRARY
from suite.collectives.cores import SHARED_CORES as SHARED_CORES_MARK
from suite.collectives.model.alpha_beta import Timing
from suite.collectives.model.crossover import Measured
from suite.collectives.names import Algo, Op
from suite.collectives.transport import Transport
from suite.outcome import Evidence, Outcome
from suite.rows import ResultRow, is_resolved

JOB = "collective"


class Setting(NamedTuple):
    """What curves in one figure have in common.  ``evidence`` and ``transport`` say where their numbers come from.

    ``regime`` is cache, load and dispatch.  ``joined`` says that a launcher started the ranks: on other hosts, maybe, over
    another link.  ``semantics`` is what else the operation is told to do, as another tool may tell it: ``redop=max``.
    """

    op: Op
    format: str
    transport: str
    in_place: bool
    evidence: str
    backend: str
    device_uid: str
    regime: str
    joined: bool = False
    semantics: str = ""


class Way(NamedTuple):
    """Who computes it, and by what: ``library`` stands for a choice that was left to it."""

    implementation: str
    algo: str
    proto: str

    @property
    def label(self) -> str:
        """``own ring``, ``library ring/simple``, ``library``."""
        if self.algo == self.proto == LIBRARY:
            return self.implementation
        chosen = self.algo if self.proto == LIBRARY else f"{self.algo}/{self.proto}"
        return f"{self.implementation} {chosen}"

    @property
    def of_model(self) -> Algo:
        """The algorithm whose formula it is held against: a choice that was left to a library is taken for a ring."""
        return Algo(self.algo) if self.algo != LIBRARY else Algo.RING

    @property
    def is_assumed(self) -> bool:
        """Whether nothing says that the formula's algorithm is the one that ran."""
        return self.algo == LIBRARY


class Doubt(StrEnum):
    """Why a time is in doubt, in the words that results are marked with."""

    NOT_RESOLVED = "not resolved"
    NOT_CONVERGED = "not converged"
    NOT_STEADY = "not steady"
    CONTENDED = "contended"
    SHARED_CORES = SHARED_CORES_MARK


# A time that others disturbed, or that is known to no more than its order of magnitude, sets no roof and wins no contest
# either.  One that did not converge, or whose load did not settle, has an interval that says how well it is known.  One of
# ranks that shared cores is what such a host does, and where every world shares them there is no other: what is made of it
# says so.
UNUSABLE = (Doubt.NOT_RESOLVED, Doubt.CONTENDED)


class Point(NamedTuple):
    """One verified time with the 95 % interval of its median, seconds; an interval that is not known is open."""

    ranks: int
    message_bytes: int
    time_s: float
    low_s: float
    high_s: float
    result_id: int
    doubts: tuple[Doubt, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether a fit is made of it and a crossing may rest on it."""
        return not any(doubt in UNUSABLE for doubt in self.doubts)

    @property
    def error(self) -> float:
        """How far the interval reaches from the median, relative to it; 0 where there is none, which says nothing."""
        return max(self.high_s - self.time_s, self.time_s - self.low_s) / self.time_s if math.isfinite(self.high_s) else 0.0

    def busbw_bytes_s(self, op: Op) -> float:
        """Bus bandwidth, bytes per second."""
        return busbw_bytes_s(op, self.ranks, self.message_bytes, self.time_s)


class Series(NamedTuple):
    """The points of one way in one setting, by world and size."""

    setting: Setting
    way: Way
    points: tuple[Point, ...]

    @property
    def worlds(self) -> tuple[int, ...]:
        return tuple(sorted({point.ranks for point in self.points}))

    def of(self, ranks: int) -> tuple[Point, ...]:
        """The points of one world, by size."""
        return tuple(point for point in self.points if point.ranks == ranks)

    def timings(self) -> tuple[Timing, ...]:
        """For a fit: the points that count."""
        return tuple(Timing(each.ranks, each.message_bytes, each.time_s, each.error) for each in self.points if each.counts)

    def measured(self, ranks: int) -> tuple[Measured, ...]:
        """For a crossing, of one world: the points that count."""
        return tuple(
            Measured(each.message_bytes, each.time_s, each.low_s, each.high_s) for each in self.of(ranks) if each.counts
        )


def left_out_words(points: Iterable[Point]) -> str:
    """Which points nothing is made of: ``3 contended, 1 not resolved``, each counted once; empty where there are none."""
    # Contended first: its interval may be wide because others were at work.
    first = (Doubt.CONTENDED, Doubt.NOT_RESOLVED)
    why = Counter(next(doubt for doubt in first if doubt in point.doubts) for point in points if not point.counts)
    return ", ".join(f"{why[doubt]} {doubt}" for doubt in first if why[doubt])


def series(rows: Iterable[ResultRow], shared: Collection[int] = ()) -> tuple[Series, ...]:
    """Every curve of these rows, in the order in which they first appear; rows without a verified time are on none.

    ``shared`` are the ids of results whose ranks shared cores.  A size that was measured twice has both its times.
    """
    found: dict[tuple[Setting, Way], list[Point]] = {}
    for row in rows:
        if is_on_a_curve(row):
            found.setdefault((_setting(row), _way(row)), []).append(_point(row, row.result_id in shared))
    return tuple(
        Series(setting, way, tuple(sorted(points, key=lambda point: (point.ranks, point.message_bytes))))
        for (setting, way), points in found.items()
    )


def is_on_a_curve(row: ResultRow) -> bool:
    """Whether a row is a verified time of ranks that have a link between them."""
    if row.job != JOB or row.outcome != Outcome.OK or not row.p50_s:
        return False
    params, switches = row.params, row.switches
    named = (
        params.get("op") in tuple(Op) and switches.get("algo") in (LIBRARY, *Algo) and {"proto", "in_place"} <= set(switches)
    )
    counted = all(isinstance(params.get(name), int) for name in ("world_size", "message_bytes"))
    sized = counted and params["world_size"] > 1 and params["message_bytes"] > 0
    return named and sized and _has_bandwidth(switches.get("transport"))


def is_without_a_link(row: ResultRow) -> bool:
    """Whether a row is a verified time of ranks that share one device, which says nothing of a link."""
    timed = row.job == JOB and row.outcome == Outcome.OK and bool(row.p50_s)
    return timed and row.switches.get("transport") == Transport.SHARED_GPU


def _has_bandwidth(transport: object) -> bool:
    return transport in tuple(Transport) and Transport(str(transport)).has_bandwidth


def by_setting(curves: Sequence[Series]) -> dict[Setting, list[Series]]:
    """The curves of each figure."""
    found: dict[Setting, list[Series]] = {}
    for each in curves:
        found.setdefault(each.setting, []).append(each)
    return found


def _setting(row: ResultRow) -> Setting:
    switches = row.switches
    return Setting(
        Op(row.params["op"]),
        row.format,
        str(switches["transport"]),
        bool(switches["in_place"]),
        row.evidence,
        row.backend,
        row.device_uid,
        row.regime,
        bool(switches.get("joined")),
        ", ".join(f"{name}={value}" for name, value in sorted(row.semantics.items())),
    )


def _way(row: ResultRow) -> Way:
    return Way(row.implementation, str(row.switches["algo"]), str(row.switches["proto"]))


def _point(row: ResultRow, are_cores_shared: bool) -> Point:
    low_s, high_s = row.interval_s or (0.0, math.inf)
    assert row.p50_s is not None, "it is on a curve"
    params, doubts = row.params, (*_doubts(row, row.p50_s), *[Doubt.SHARED_CORES] * are_cores_shared)
    return Point(params["world_size"], params["message_bytes"], row.p50_s, low_s, high_s, row.result_id, doubts)


def _doubts(row: ResultRow, p50_s: float) -> Iterator[Doubt]:
    """Another tool's log has no intervals at all: that says nothing against one of its times."""
    if row.interval_s is not None or row.evidence != Evidence.IMPORTED:
        low_s, high_s = row.interval_s or (None, None)
        if not is_resolved(low_s, high_s, p50_s):
            yield Doubt.NOT_RESOLVED
    if row.converged is False:
        yield Doubt.NOT_CONVERGED
    if row.steady is False:
        yield Doubt.NOT_STEADY
    if row.contended is True:
        yield Doubt.CONTENDED
