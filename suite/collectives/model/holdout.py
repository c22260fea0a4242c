"""How far a fit is off where it was not fitted: the largest world is left out and predicted from the smaller ones."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from suite.collectives.model.alpha_beta import Fit, Refusal, Timing, fit
from suite.collectives.names import Algo


class HeldOutError(NamedTuple):
    """``relative`` is predicted over measured, less 1."""

    message_bytes: int
    measured_s: float
    predicted_s: float

    @property
    def relative(self) -> float:
        """Positive where the prediction is too long."""
        return self.predicted_s / self.measured_s - 1


class HeldOut(NamedTuple):
    """The fit of the smaller worlds, and its errors at the ``ranks`` of the largest, by size."""

    ranks: int
    fit: Fit
    errors: tuple[HeldOutError, ...]

    @property
    def median(self) -> float:
        """Of the absolute relative errors."""
        return statistics.median(abs(error.relative) for error in self.errors)

    @property
    def worst(self) -> float:
        """The largest absolute relative error."""
        return max(abs(error.relative) for error in self.errors)


def held_out(algo: Algo, timings: Sequence[Timing]) -> HeldOut | Refusal:
    """Fit all worlds but the largest and predict that one."""
    worlds = sorted({timing.ranks for timing in timings})
    if len(worlds) < 2:
        return Refusal(f"{len(worlds)} world size; holding one out takes 2 or more")
    found = fit(algo, [timing for timing in timings if timing.ranks < worlds[-1]])
    if isinstance(found, Refusal):
        return found
    largest = sorted(timing for timing in timings if timing.ranks == worlds[-1])
    errors = (
        HeldOutError(timing.message_bytes, timing.time_s, found.time_s(timing.ranks, timing.message_bytes))
        for timing in largest
    )
    return HeldOut(worlds[-1], found, tuple(errors))
