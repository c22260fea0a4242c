"""When one round of an alternating measurement is over: an object that is fed samples and asked whether it is done."""

import math
from collections.abc import Sequence

LEAST_SAMPLES = 3  # a round has a median
SHORTEST_S = 1e-9  # of a sample: one that lasts no time would be asked for without end


class RoundRule:
    """Stops once the samples' own durations cover ``least_s`` and their calls ``window_s`` of wall time, or after ``most_s``.

    Rounds of every implementation then weigh alike, whatever flushes between the samples cost.  Times are seconds.
    """

    def __init__(self, least_s: float, window_s: float, most_s: float) -> None:
        self._least_s, self._window_s, self._most_s = least_s, window_s, most_s
        self._count = 0
        self._own_s = self._wall_s = 0.0

    def next_count(self) -> int:
        """How many samples to take next: at least one."""
        if not self._count:
            return LEAST_SAMPLES
        missing = max(self._more(self._least_s, self._own_s), self._more(self._window_s, self._wall_s))
        return max(1, LEAST_SAMPLES - self._count, min(missing, self._more(self._most_s, self._wall_s)))

    def feed(self, durations_s: Sequence[float], elapsed_s: float, _cycles: Sequence[float] = ()) -> None:
        """Add samples; ``elapsed_s`` is the wall time they cost, untimed flushes included.  Their cycles decide nothing."""
        self._count += len(durations_s)
        self._own_s += math.fsum(durations_s)
        self._wall_s += elapsed_s

    def done(self) -> bool:
        """Whether the round can end."""
        covered = self._own_s >= self._least_s and self._wall_s >= self._window_s
        return self._count >= LEAST_SAMPLES and (covered or self._wall_s >= self._most_s)

    def _more(self, wanted_s: float, had_s: float) -> int:
        """How many more samples like those so far make up for what is missing."""
        return max(0, math.ceil((wanted_s - had_s) / max(had_s / self._count, SHORTEST_S)))
