"""How far a fit is off where it was not fitted: the largest world is left out and predicted from the smaller ones."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from suite.collectives.model.alpha_beta import Fit, Refusal, Timing, fit_from
from suite.collectives.names import Algo, Op


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

    def near(self, message_bytes: int) -> float:
        """The absolute relative error at the size that is nearest, by factor."""
        nearest = min(self.errors, key=lambda error: abs(math.log(error.message_bytes / message_bytes)))
        return abs(nearest.relative)


def held_out(algo: Algo, timings: Sequence[Timing], op: Op = Op.ALL_REDUCE) -> HeldOut | Refusal:
    """Fit all worlds but the largest and predict that one, of the sizes that the fit is of."""
    worlds = sorted({timing.ranks for timing in timings})
    if len(worlds) < 2:
        return Refusal(f"{len(worlds)} world size; holding one out takes 2 or more")
    found = fit_from(algo, [timing for timing in timings if timing.ranks < worlds[-1]], op)
    if isinstance(found, Refusal):
        return found
    largest = sorted(timing for timing in timings if timing.ranks == worlds[-1] and timing.message_bytes >= found.from_bytes)
    if not largest:
        return Refusal(f"no message of {worlds[-1]} ranks has {found.from_bytes} bytes or more, from where the fit holds")
    errors = (
        HeldOutError(timing.message_bytes, timing.time_s, found.time_s(timing.ranks, timing.message_bytes))
        for timing in largest
    )
    return HeldOut(worlds[-1], found, tuple(errors))
