"""How much of a sweep is left: predicted times, corrected by how long cases really took."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from suite.launcher.happenings import CaseEnded
from suite.launcher.launch import waves
from suite.planned import DeviceSlot, PlannedCase

# Predictions are rough: the first few cases must not swing the display between minutes and hours.
TRUSTED_AFTER_S = 10.0

NOTHING_BESIDES: Mapping[int, float] = MappingProxyType({})


def wall_s(
    slots: Sequence[DeviceSlot], cases: Sequence[PlannedCase], besides_s: Mapping[int, float] = NOTHING_BESIDES
) -> float:
    """Predicted seconds for all cases and, by slot, what there is to do besides.

    Lanes of a wave run at the same time, waves one by one.
    """
    by_slot = defaultdict(float, besides_s)
    for planned in cases:
        by_slot[planned.slot] += planned.predicted_s
    return _alone_s(_slots(slots), by_slot)


class Estimate:
    """Counts cases and predicts the time left; ``besides_s`` is what each slot has to do besides, until it has ``passed``."""

    def __init__(
        self,
        slots: Sequence[DeviceSlot],
        todo: Sequence[PlannedCase],
        total: int,
        besides_s: Mapping[int, float] = NOTHING_BESIDES,
    ) -> None:
        self.total = total
        self.done = total - len(todo)
        self._waves = _slots(slots)
        self._left_s = defaultdict(float, besides_s)
        for planned in todo:
            self._left_s[planned.slot] += planned.predicted_s
        self._predicted_s = self._taken_s = 0.0

    def passed(self, slot: int, predicted_s: float) -> None:
        """Take note that so much of what a slot has to do besides its cases is done."""
        self._left_s[slot] -= predicted_s

    def ended(self, case: CaseEnded) -> None:
        """Take note of a finished case."""
        self.done += 1
        self._left_s[case.planned.slot] -= case.planned.predicted_s
        self._predicted_s += case.planned.predicted_s
        self._taken_s += case.elapsed_s

    @property
    def remaining_s(self) -> float | None:
        """Seconds left; ``None`` before any case has been timed."""
        if not self._taken_s:
            return None
        return max(0.0, _alone_s(self._waves, self._left_s) * self._correction)

    @property
    def _correction(self) -> float:
        """Measured over predicted time so far, starting from 1 as if ``TRUSTED_AFTER_S`` had gone as predicted."""
        return (self._taken_s + TRUSTED_AFTER_S) / (self._predicted_s + TRUSTED_AFTER_S)


Waves = list[list[list[int]]]


def _slots(slots: Sequence[DeviceSlot]) -> Waves:
    return [[[slot.slot for slot in lane] for lane in wave] for wave in waves(slots)]


def _alone_s(of: Waves, left_s: Mapping[int, float]) -> float:
    return sum(max(sum(left_s.get(slot, 0.0) for slot in lane) for lane in wave) for wave in of)
