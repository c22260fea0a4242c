"""Latency and bandwidth of an algorithm from measured times, and when there is nothing to be had from them.

    t = steps alpha + volume / B      see ``formulas``

alpha is seconds a step, B bytes per second.  The fit is one of relative errors, as times span decades; one operation,
algorithm and protocol a fit.  How well alpha and B are known follows from the intervals of the times and from how far they
scatter about the line.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from suite.collectives.model.formulas import terms
from suite.collectives.names import Algo, Op
from suite.compare.student import upper_tail

LEAST_R_SQUARED = 0.9
LEAST_TRANSFER = 0.25  # of the time of the largest message; with less, the slope is that of noise
LEAST_SIZES = 4
_TAIL = 0.025  # on each side of a 95 % interval


class Timing(NamedTuple):
    """One measured collective.  ``error`` is how far its 95 % interval reaches, relative to the time; 0 where none is known."""

    ranks: int
    message_bytes: int
    time_s: float
    error: float = 0.0


class Spread(NamedTuple):
    """Squares of the 95 % half widths of alpha (s) and 1/B (s/B), and what they share: a covariance at that level."""

    alpha2: float = 0.0
    both: float = 0.0
    inverse2: float = 0.0

    def half_width(self, steps: float, volume: float) -> float:
        """Of ``steps alpha + volume / B``, seconds."""
        return math.sqrt(max(0.0, steps**2 * self.alpha2 + 2 * steps * volume * self.both + volume**2 * self.inverse2))


class Fit(NamedTuple):
    """``transfer_share`` is the bandwidth term's share of the largest message's time; ``largest_ranks`` the largest world.

    ``alpha_s`` is 0 where the times show none.  Nothing is said of messages below ``from_bytes``, which were not fitted.
    ``spread`` is how well both constants are known.
    """

    algo: Algo
    alpha_s: float
    bandwidth_bytes_s: float
    r_squared: float
    transfer_share: float
    largest_ranks: int
    op: Op = Op.ALL_REDUCE
    from_bytes: int = 0
    spread: Spread = Spread()

    def time_s(self, ranks: int, message_bytes: int) -> float:
        """The time that the fit says, seconds."""
        steps, volume = terms(self.op, self.algo, ranks, message_bytes)
        return steps * self.alpha_s + volume / self.bandwidth_bytes_s

    def error(self, ranks: int, message_bytes: int) -> float:
        """The 95 % half width of that time, relative to it."""
        return self.spread.half_width(*terms(self.op, self.algo, ranks, message_bytes)) / self.time_s(ranks, message_bytes)

    @property
    def alpha_error(self) -> float:
        """The 95 % half width of alpha, relative to it; infinite where alpha is 0."""
        return math.sqrt(self.spread.alpha2) / self.alpha_s if self.alpha_s else math.inf

    @property
    def bandwidth_error(self) -> float:
        """The 95 % half width of 1/B, relative to it."""
        return math.sqrt(self.spread.inverse2) * self.bandwidth_bytes_s


class Refusal(NamedTuple):
    """Why times give no fit."""

    reason: str


def fit(algo: Algo, timings: Sequence[Timing], op: Op = Op.ALL_REDUCE) -> Fit | Refusal:
    """Fit alpha and B to all worlds at once; refuse what they would not mean.

    Raises ``UsageError`` for an algorithm without a formula, and for a world below two ranks.
    """
    sizes = {timing.message_bytes for timing in timings}
    if len(sizes) < LEAST_SIZES:
        several = "" if len(sizes) == 1 else "s"
        return Refusal(f"{len(sizes)} message size{several}; a fit takes {LEAST_SIZES} or more")
    times_s = np.array([timing.time_s for timing in timings])
    if not (times_s > 0).all():
        return Refusal("a time that is not above 0: nothing was measured there")
    known = np.array([terms(op, algo, timing.ranks, timing.message_bytes) for timing in timings]) / times_s[:, None]
    alpha_s, inverse = _solved(known)
    if inverse <= 0:
        return Refusal(f"alpha {alpha_s:.3g} s and 1/B {inverse:.3g} s/B: the times do not follow the formula")
    errors = np.array([timing.error for timing in timings])
    spread = _spread(known, np.array([alpha_s, inverse]), errors)
    largest = max(timing.ranks for timing in timings)
    return _judged(Fit(algo, alpha_s, 1 / inverse, 0.0, 0.0, largest, op, spread=spread), timings)


def fit_from(algo: Algo, timings: Sequence[Timing], op: Op = Op.ALL_REDUCE) -> Fit | Refusal:
    """As ``fit``, of the largest messages that one line goes through: where all do not, the smallest are left out one by one.

    A library changes its protocol with the size, and on a busy host the latency of two ranks is not that of eight: what then
    still follows the formula are large messages.  The reason of a refusal is that of all sizes together.
    """
    sizes = sorted({timing.message_bytes for timing in timings})
    whole = found = fit(algo, timings, op)
    for least in sizes[1 : len(sizes) - LEAST_SIZES + 1]:
        if isinstance(found, Fit):
            break
        found = fit(algo, [timing for timing in timings if timing.message_bytes >= least], op)
        found = found._replace(from_bytes=least) if isinstance(found, Fit) else found
    return found if isinstance(found, Fit) else whole


def _solved(known: NDArray[np.float64]) -> tuple[float, float]:
    """alpha and 1/B by least squares of relative errors; alpha is 0 where it would come out below."""
    ones = np.ones(len(known))
    solution, _, rank, _ = np.linalg.lstsq(known / _scale(known), ones, rcond=None)
    alpha_s, inverse = (float(each) for each in solution / _scale(known))
    if rank < len(solution):
        return alpha_s, 0.0  # steps and bytes grow alike: nothing tells one from the other
    if alpha_s < 0:
        volume = known[:, 1]
        return 0.0, float(volume @ ones / (volume @ volume))
    return alpha_s, inverse


def _spread(known: NDArray[np.float64], solution: NDArray[np.float64], errors: NDArray[np.float64]) -> Spread:
    """How far alpha and 1/B may be off where each relative time is off, by itself, by its interval or by the scatter.

    Whichever of the two is wider: an interval knows nothing of what the formula leaves out, and few points may lie on a line
    by chance.  An alpha that was held at 0 is as unknown as one that was not.
    """
    scale = _scale(known)
    moves = np.linalg.pinv(known / scale) / scale[:, None]  # of both constants, for each time's relative error
    degrees = len(known) - 2
    scatter = math.sqrt(float(np.sum((1 - known @ solution) ** 2)) / degrees) * _quantile(degrees)
    moved = moves * np.maximum(errors, scatter)
    alpha2, both, _, inverse2 = (float(each) for each in (moved @ moved.T).flat)
    return Spread(alpha2, both, inverse2)


@cache
def _quantile(degrees: int) -> float:
    """What Student's t exceeds on either side of its 95 %."""
    low, high = 0.0, 16.0  # one degree has 12.7
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if upper_tail(middle, degrees) > _TAIL else (low, middle)
    return high


def _judged(found: Fit, timings: Sequence[Timing]) -> Fit | Refusal:
    largest, bandwidth = max(timings, key=lambda timing: (timing.message_bytes, timing.ranks)), found.bandwidth_bytes_s
    transfer = terms(found.op, found.algo, largest.ranks, largest.message_bytes).volume / bandwidth
    share = transfer / found.time_s(largest.ranks, largest.message_bytes)
    found = found._replace(r_squared=_r_squared(found, timings), transfer_share=share)
    if found.r_squared < LEAST_R_SQUARED:
        return Refusal(f"R^2 {found.r_squared:.2f} is below {LEAST_R_SQUARED}: the times do not follow the formula")
    if share < LEAST_TRANSFER:
        return Refusal(
            f"transfer is {100 * share:.0f} % of the time of the largest message, under {100 * LEAST_TRANSFER:.0f} %: its "
            f"bandwidth of {bandwidth / 1e9:.0f} GB/s would be noise; measure larger messages"
        )
    if found.bandwidth_error > 1:
        return Refusal("B is not resolved: the times are known too little, or too few lie on a line; measure longer, or more")
    return found


def _r_squared(found: Fit, timings: Sequence[Timing]) -> float:
    """Share of the variance of relative times that the fit explains."""
    times_s = np.array([timing.time_s for timing in timings])
    fitted = np.array([found.time_s(timing.ranks, timing.message_bytes) for timing in timings])
    weights = times_s**-2.0
    mean = np.average(times_s, weights=weights)
    total = float(np.sum(weights * (times_s - mean) ** 2))
    return 1 - float(np.sum(weights * (times_s - fitted) ** 2)) / total if total else 0.0


def _scale(known: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns of steps and of bytes are nine decades apart; the solver wants them alike."""
    return np.asarray(np.abs(known).max(axis=0))
