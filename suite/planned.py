"""The result of planning: cases in the order they will run, each with what it asks of the machine."""

from typing import NamedTuple

from suite.backend import DeviceInfo
from suite.case import Case
from suite.outcome import Outcome
from suite.work import Work


class DeviceSlot(NamedTuple):
    """A place in a run that one worker at a time serves.  ``info`` is ``None`` when planning for hardware that is not here."""

    slot: int
    backend: str
    target: str  # module:Class of the backend
    info: DeviceInfo | None

    @property
    def distinction(self) -> str:
        """What tells it from others of its run: ``xla``, or ``device=2, cuda`` where it is asked for by another number."""
        is_asked_as = self.info is not None and self.info.index != self.slot
        return f"device={self.info.index}, {self.backend}" if self.info is not None and is_asked_as else self.backend


class PlannedCase(NamedTuple):
    """One case on one device slot.

    ``sets`` is how many input sets rotate; ``memory_bytes`` is the predicted need, ``predicted_s`` the predicted wall
    time.  Cases of one slot that share a ``cohort`` (same workload and regime) are prepared together when rounds
    alternate.  ``verdict`` is an outcome already known without running (``out_of_memory``, ``unsupported``).
    """

    slot: int
    cohort: int
    case: Case
    work: Work
    tolerance: float
    sets: int
    memory_bytes: int
    predicted_s: float
    verdict: Outcome | None = None
    reason: str = ""
