"""Models beside measurement: what a run's times say of alpha and B, of where ring and tree cross, and of larger worlds.

What is fitted is evidence ``modelled`` and never stands in a curve of what was measured.  Neither a fit nor a crossing rests on
a time that others disturbed or that is not resolved, as no roof does.  Both may rest on times of ranks that shared cores, and
say so.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from suite.collectives.model.alpha_beta import Fit, Refusal, fit_from
from suite.collectives.model.crossover import Crossing, PredictedCrossing, crossings, predicted_crossing
from suite.collectives.model.formulas import formula
from suite.collectives.model.holdout import HeldOut, held_out
from suite.collectives.model.simulate import Simulated, simulated
from suite.collectives.names import Algo
from suite.collectives.series import Doubt, Point, Series, Setting, by_setting, left_out_words, series
from suite.collectives.tree import LARGEST_WORLD
from suite.rows import ResultRow


class Modelled(NamedTuple):
    """A curve with what was made of it: a fit or why there is none, and its error in the largest world, or why it has none."""

    curve: Series
    fit: Fit | Refusal
    held_out: HeldOut | Refusal

    @property
    def fitted(self) -> tuple[Point, ...]:
        """The points that the fit is made of; none of one that was refused."""
        if isinstance(self.fit, Refusal):
            return ()
        return tuple(point for point in self.curve.points if point.counts and point.message_bytes >= self.fit.from_bytes)

    def beyond(self, message_bytes: int) -> tuple[Simulated, ...]:
        """Twice the largest measured world, then four times each, up to the largest there is, in the band that widens."""
        if isinstance(self.fit, Refusal):
            return ()
        error = self.held_out.near(message_bytes) if isinstance(self.held_out, HeldOut) else 0.0
        fits, errors = {self.fit.algo: self.fit}, {self.fit.algo: error}
        return tuple(simulated(fits, larger_worlds(self.fit.largest_ranks), [message_bytes], errors))


class Crossover(NamedTuple):
    """Ring against tree in one world.  ``left_out`` are the points of either that no crossing rests on; ``fitted`` those that
    the fits are of, in any world, where both have one.

    ``predicted`` is ``None`` where ``are_fitted`` is false, where one is faster at every size by its fit, and where they
    would cross at a size of which one of the fits says nothing.
    """

    first: Series
    second: Series
    ranks: int
    measured: tuple[Crossing, ...]
    predicted: PredictedCrossing | None
    are_fitted: bool
    left_out: tuple[Point, ...] = ()
    fitted: tuple[Point, ...] = ()

    def rests_on(self, crossing: Crossing, doubt: Doubt) -> bool:
        """Whether a measured crossing lies between times of which one is in that doubt."""
        at = (point for curve in (self.first, self.second) for point in curve.of(self.ranks) if point.counts)
        return any(doubt in point.doubts for point in at if point.message_bytes in crossing.between)


class Study(NamedTuple):
    """Everything of one setting."""

    setting: Setting
    models: tuple[Modelled, ...]
    crossovers: tuple[Crossover, ...]

    @property
    def worlds(self) -> tuple[int, ...]:
        """Every world that was measured."""
        return tuple(sorted({ranks for each in self.models for ranks in each.curve.worlds}))

    @property
    def largest_bytes(self) -> int:
        """The largest message of any curve."""
        return max(point.message_bytes for each in self.models for point in each.curve.points)


def studies(rows: Iterable[ResultRow], shared: Collection[int] = ()) -> tuple[Study, ...]:
    """One for each operation, format and transport of the collectives among ``rows``; ``shared`` as for ``series``."""
    return tuple(_study(setting, curves) for setting, curves in by_setting(series(rows, shared)).items())


def larger_worlds(measured: int) -> tuple[int, ...]:
    """Worlds to predict beyond ``measured``: every second power of two, and the largest there is."""
    power = 1 << measured.bit_length()
    worlds = []
    while power < LARGEST_WORLD:
        worlds.append(power)
        power *= 4
    return (*worlds, *([LARGEST_WORLD] if measured < LARGEST_WORLD else []))


def _study(setting: Setting, curves: Sequence[Series]) -> Study:
    models = tuple(map(_modelled, curves))
    return Study(setting, models, tuple(_crossovers(models)))


def _modelled(curve: Series) -> Modelled:
    op, algo = curve.setting.op, curve.way.of_model
    if formula(op, algo) is None:
        return Modelled(curve, *[Refusal(f"there is no formula for {algo} of {op}")] * 2)
    timings, passed_over = curve.timings(), left_out_words(curve.points)
    found, beside = fit_from(algo, timings, op), held_out(algo, timings, op)
    if passed_over:  # what there is too little of may be among these
        found = _told(found, passed_over) if isinstance(found, Refusal) else found
        beside = _told(beside, passed_over) if isinstance(beside, Refusal) else beside
    return Modelled(curve, found, beside)


def _told(refusal: Refusal, passed_over: str) -> Refusal:
    return Refusal(f"{refusal.reason}; left out: {passed_over}")


def _crossovers(models: Sequence[Modelled]) -> Iterator[Crossover]:
    """Of ring and tree that differ in nothing else."""
    for one, other in combinations(models, 2):
        ways = one.curve.way, other.curve.way
        if {way.algo for way in ways} == {Algo.RING, Algo.TREE} and ways[0] == ways[1]._replace(algo=ways[0].algo):
            for ranks in one.curve.worlds:
                if ranks in other.curve.worlds:
                    yield _crossover(one, other, ranks)


def _crossover(one: Modelled, other: Modelled, ranks: int) -> Crossover:
    first, second = one.curve, other.curve
    measured = crossings(first.way.algo, first.measured(ranks), second.way.algo, second.measured(ranks))
    left_out = tuple(point for curve in (first, second) for point in curve.of(ranks) if not point.counts)
    if isinstance(one.fit, Refusal) or isinstance(other.fit, Refusal):
        return Crossover(first, second, ranks, measured, None, are_fitted=False, left_out=left_out)
    predicted = predicted_crossing(one.fit, other.fit, ranks)
    if predicted is not None and predicted.at_bytes < max(one.fit.from_bytes, other.fit.from_bytes):
        predicted = None
    fitted = (*one.fitted, *other.fitted)
    return Crossover(first, second, ranks, measured, predicted, are_fitted=True, left_out=left_out, fitted=fitted)
