"""Latency and bandwidth of an algorithm from measured times, and when there is nothing to be had from them.

    ring all_reduce   t = 2(n-1) (alpha + S/(n B))
    tree all_reduce   t = 2 log2(n) alpha + 2 S/B      pipelined: both trees together fill a link twice

alpha is seconds a step, B bytes per second.  The fit is one of relative errors, as times span decades; one algorithm and
protocol a fit.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from suite.collectives.names import Algo
from suite.errors import UsageError

LEAST_R_SQUARED = 0.9
LEAST_TRANSFER = 0.25  # of the time of the largest message; with less, the slope is that of noise
LEAST_SIZES = 4


class Timing(NamedTuple):
    """One measured all_reduce."""

    ranks: int
    message_bytes: int
    time_s: float


class Fit(NamedTuple):
    """``transfer_share`` is the bandwidth term's share of the largest message's time; ``largest_ranks`` the largest world."""

    algo: Algo
    alpha_s: float
    bandwidth_bytes_s: float
    r_squared: float
    transfer_share: float
    largest_ranks: int

    def time_s(self, ranks: int, message_bytes: int) -> float:
        """The time that the fit says, seconds."""
        steps, volume = _terms(self.algo, ranks, message_bytes)
        return steps * self.alpha_s + volume / self.bandwidth_bytes_s


class Refusal(NamedTuple):
    """Why times give no fit."""

    reason: str


def fit(algo: Algo, timings: Sequence[Timing]) -> Fit | Refusal:
    """Fit alpha and B to all worlds at once; refuse what they would not mean.

    Raises ``UsageError`` for an algorithm without a formula, and for a world below two ranks.
    """
    sizes = {timing.message_bytes for timing in timings}
    if len(sizes) < LEAST_SIZES:
        return Refusal(f"{len(sizes)} message sizes; a fit takes {LEAST_SIZES} or more")
    times_s = np.array([timing.time_s for timing in timings])
    if not (times_s > 0).all():
        return Refusal("a time that is not above 0: nothing was measured there")
    terms = np.array([_terms(algo, timing.ranks, timing.message_bytes) for timing in timings])
    solution, _, rank, _ = np.linalg.lstsq(terms / times_s[:, None] / _scale(terms), np.ones(len(timings)), rcond=None)
    alpha_s, inverse = (float(each) for each in solution / _scale(terms))
    if rank < 2 or inverse <= 0 or alpha_s < 0:
        return Refusal(f"alpha {alpha_s:.3g} s and 1/B {inverse:.3g} s/B: the times do not follow the formula")
    return _judged(algo, timings, alpha_s, 1 / inverse)


def _judged(algo: Algo, timings: Sequence[Timing], alpha_s: float, bandwidth: float) -> Fit | Refusal:
    largest = max(timings, key=lambda timing: (timing.message_bytes, timing.ranks))
    found = Fit(algo, alpha_s, bandwidth, 0.0, 0.0, max(timing.ranks for timing in timings))
    transfer = _terms(algo, largest.ranks, largest.message_bytes)[1] / bandwidth
    share = transfer / found.time_s(largest.ranks, largest.message_bytes)
    found = found._replace(r_squared=_r_squared(found, timings), transfer_share=share)
    if found.r_squared < LEAST_R_SQUARED:
        return Refusal(f"R^2 {found.r_squared:.2f} is below {LEAST_R_SQUARED}: the times do not follow the formula")
    if share < LEAST_TRANSFER:
        return Refusal(
            f"transfer is {share:.0%} of the time of the largest message, under {LEAST_TRANSFER:.0%}: its bandwidth of "
            f"{bandwidth / 1e9:.0f} GB/s would be noise; measure larger messages"
        )
    return found


def _r_squared(found: Fit, timings: Sequence[Timing]) -> float:
    """Share of the variance of relative times that the fit explains."""
    times_s = np.array([timing.time_s for timing in timings])
    fitted = np.array([found.time_s(timing.ranks, timing.message_bytes) for timing in timings])
    weights = times_s**-2.0
    mean = np.average(times_s, weights=weights)
    total = float(np.sum(weights * (times_s - mean) ** 2))
    return 1 - float(np.sum(weights * (times_s - fitted) ** 2)) / total if total else 0.0


def _scale(terms: np.ndarray) -> np.ndarray:
    """Columns of steps and of bytes are nine decades apart; the solver wants them alike."""
    return np.asarray(np.abs(terms).max(axis=0))


def _terms(algo: Algo, ranks: int, message_bytes: int) -> tuple[float, float]:
    """What alpha and 1/B are multiplied with."""
    if ranks < 2:
        raise UsageError(f"an all_reduce over {ranks} rank has no model: nothing is sent; take at least 2 ranks")
    if algo is Algo.RING:
        return 2.0 * (ranks - 1), 2.0 * (ranks - 1) * message_bytes / ranks
    if algo is Algo.TREE:
        return 2 * math.log2(ranks), 2.0 * message_bytes
    raise UsageError(f"there is no alpha-beta formula for {algo}; there is one for ring and for tree")
