"""Whether one of two results is faster, from how far apart they are and how far chance can take them.

Three tests, each of the logarithm of B over A, so that twice as long and half as long are as far:

    FASTER, SLOWER  by the noise within the two runs it lies beyond delta, which is the least difference asked for or the
                    device's repeatability, whichever is larger; and with the spread from run to run added to that noise it
                    still lies beyond the least difference asked for
    SAME            with that spread added, it lies between -delta and delta

The second condition is there for comparisons of many cases.  One in twenty cases differs by more than the repeatability where
nothing changed, by definition, and as the noise within a run is small, no correction over the cases would know of it.  For SAME
the noise within the runs is not enough for the same reason: two runs of a device that wanders are then UNDECIDED.
``tests/compare/RATES.md`` has figures.

P-values are corrected over the cases (Benjamini and Hochberg), those of a difference and those of equality each on their own.

A case of which one side was measured beside other work is UNDECIDED without a test.  The noise within the runs knows nothing of
that work, which was there in one run and not in the other: the same code then differs by several times, beyond any noise.  Its
p-values would be as small as those of a true difference, and would change the correction of the others'.
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from suite.compare.correction import benjamini_hochberg
from suite.compare.noise import Noise
from suite.compare.spread import Spread
from suite.compare.student import upper_tail
from suite.errors import UsageError
from suite.measure.statistics import Interval, t_95

LEVEL = 0.05  # of every test, and of the false discoveries among the cases of a comparison
MIN_EFFECT = 0.01


class Verdict(StrEnum):
    """B against A, the worst news first."""

    SLOWER = "SLOWER"
    UNDECIDED = "UNDECIDED"
    SAME = "SAME"
    FASTER = "FASTER"


class Gap(NamedTuple):
    """What a verdict is reached from: ``change`` is the logarithm of B over A, ``noise`` of it within the two runs.

    ``min_effect`` is the least difference that matters, as a ratio less one.  ``untestable`` says why no test would mean
    anything, and is empty elsewhere.
    """

    change: float
    noise: tuple[Noise, Noise]
    spread: Spread
    min_effect: float = MIN_EFFECT
    untestable: str = ""

    @property
    def delta(self) -> float:
        """The larger of the least difference that matters and the repeatability, as a ratio less one."""
        return max(self.min_effect, self.spread.rel or 0.0)

    def within(self, sign: int) -> "Error":
        """How far chance within the runs can have raised the change (``sign`` 1), or lowered it (-1)."""
        return together(*self._parts(sign))

    def total(self, sign: int) -> "Error":
        """The same, with the spread from run to run."""
        return together(*self._parts(sign), Error(self.spread.noise.above, self.spread.noise.degrees))

    def _parts(self, sign: int) -> tuple["Error", "Error"]:
        """A change that is too large comes of a first median that is too small or a second one that is too large."""
        a, b = self.noise
        ends = (a.above, b.below) if sign > 0 else (a.below, b.above)
        return Error(ends[0], a.degrees), Error(ends[1], b.degrees)


class Error(NamedTuple):
    """A standard error and the degrees of freedom that it is known to."""

    size: float
    degrees: int


class Judgement(NamedTuple):
    """``p_differs`` and ``p_same`` are corrected over the cases; ``interval`` is the 95 % one of the ratio, spread included.

    ``why`` says why a case was not tested, and is empty elsewhere; its p-values are then 1, and its interval is one of chance
    within the runs alone.
    """

    verdict: Verdict
    p_differs: float
    p_same: float
    interval: Interval
    why: str = ""


def refuse_effect(min_effect: float) -> None:
    """``UsageError`` for what is no share of a time."""
    if not math.isfinite(min_effect) or not 0 <= min_effect < 1:
        raise UsageError(f"--min-effect {min_effect:g} is not between 0 and 1; write 0.01 for 1 %")


def judge(gaps: Sequence[Gap]) -> list[Judgement]:
    """A verdict for each case of a comparison."""
    tested = [gap for gap in gaps if not gap.untestable]
    differs = iter(benjamini_hochberg([p_differs(gap) for gap in tested]))
    same = iter(benjamini_hochberg([p_same(gap) for gap in tested]))
    return [
        Judgement(Verdict.UNDECIDED, 1.0, 1.0, ratio_interval(gap), gap.untestable)
        if gap.untestable
        else _judged(gap, next(differs), next(same))
        for gap in gaps
    ]


def p_differs(gap: Gap) -> float:
    """Twice the smaller p-value of the tests for slower and for faster."""
    return min(1.0, 2 * min(_p_beyond(gap, 1), _p_beyond(gap, -1)))


def p_same(gap: Gap) -> float:
    """The larger p-value of two one-sided tests (Schuirmann 1987)."""
    return max(_tail(math.log1p(gap.delta) - sign * gap.change, gap.total(-sign)) for sign in (1, -1))


def ratio_interval(gap: Gap) -> Interval:
    """The 95 % interval of B over A; each end by the errors towards it (Zou and Donner 2008)."""
    low, high = (t_95(error.degrees) * error.size for error in (gap.total(1), gap.total(-1)))
    return Interval(_exp(gap.change - low), _exp(gap.change + high))


def together(*parts: Error) -> Error:
    """The error of a sum of independent parts; degrees of freedom by Welch and Satterthwaite, rounded down."""
    size = math.hypot(*(part.size for part in parts))
    if not size or math.isinf(size):
        return Error(size, min(part.degrees for part in parts))
    shares = math.fsum((part.size / size) ** 4 / part.degrees for part in parts)
    return Error(size, max(1, int(1 / shares * (1 + 1e-9))))


def _judged(gap: Gap, differs: float, same: float) -> Judgement:
    return Judgement(_verdict(gap, differs, same), differs, same, ratio_interval(gap))


def _verdict(gap: Gap, differs: float, same: float) -> Verdict:
    if differs <= LEVEL:
        return Verdict.SLOWER if gap.change > 0 else Verdict.FASTER
    return Verdict.SAME if same <= LEVEL else Verdict.UNDECIDED


def _p_beyond(gap: Gap, sign: int) -> float:
    """Of the change being beyond delta upwards (``sign`` 1) or downwards (-1): both conditions, so the larger counts."""
    change = sign * gap.change
    return max(
        _tail(change - math.log1p(gap.delta), gap.within(sign)),
        _tail(change - math.log1p(gap.min_effect), gap.total(sign)),
    )


def _tail(distance: float, error: Error) -> float:
    """How likely chance alone goes that far; without any noise it goes nowhere."""
    if math.isinf(error.size):
        return 1.0
    if not error.size:
        return 0.0 if distance > 0 else 1.0
    return upper_tail(distance / error.size, error.degrees)


def _exp(value: float) -> float:
    return math.exp(value) if value < _LARGEST else math.inf


_LARGEST = 700.0  # the exponent of a float
