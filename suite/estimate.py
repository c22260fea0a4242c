"""How much of a sweep is left: predicted times, corrected by how long cases really took."""

from collections import defaultdict
from collections.abc import Sequence

from suite.launcher.happenings import CaseEnded
from suite.launcher.launch import waves
from suite.planned import DeviceSlot, PlannedCase

# Predictions are rough: the first few cases must not swing the display between minutes and hours.
TRUSTED_AFTER_S = 10.0


class Estimate:
    """Counts cases and predicts the time left."""

    def __init__(self, slots: Sequence[DeviceSlot], todo: Sequence[PlannedCase], total: int) -> None:
        self.total = total
        self.done = total - len(todo)
        self._waves = [[[slot.slot for slot in lane] for lane in wave] for wave in waves(slots)]
        self._left_s: defaultdict[int, float] = defaultdict(float)
        for planned in todo:
            self._left_s[planned.slot] += planned.predicted_s
        self._predicted_s = self._taken_s = 0.0

    def ended(self, case: CaseEnded) -> None:
        """Take note of a finished case."""
        self.done += 1
        self._left_s[case.planned.slot] -= case.planned.predicted_s
        self._predicted_s += case.planned.predicted_s
        self._taken_s += case.elapsed_s

    @property
    def remaining_s(self) -> float | None:
        """Seconds left; ``None`` before any case has been timed.  Lanes of a wave run at the same time, waves one by one."""
        if not self._taken_s:
            return None
        alone = sum(max(sum(self._left_s[slot] for slot in lane) for lane in wave) for wave in self._waves)
        return max(0.0, alone * self._correction)

    @property
    def _correction(self) -> float:
        """Measured over predicted time so far, starting from 1 as if ``TRUSTED_AFTER_S`` had gone as predicted."""
        return (self._taken_s + TRUSTED_AFTER_S) / (self._predicted_s + TRUSTED_AFTER_S)
