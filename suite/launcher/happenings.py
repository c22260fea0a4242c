"""What the launcher tells whoever runs it, beside the events that are passed on as they are."""

from typing import NamedTuple

from suite.events import PhaseStarted, WorkerRestarted
from suite.measurement import Measurement
from suite.planned import PlannedCase
from suite.protocol import Ready


class CaseEnded(NamedTuple):
    """A case is over.  ``ready`` describes the worker that served it, ``None`` when no worker could be started."""

    planned: PlannedCase
    measurement: Measurement
    ready: Ready | None
    elapsed_s: float


class WorkerLog(NamedTuple):
    """A worker has ended; ``text`` is what it printed."""

    slot: int
    text: str


class LaneEnded(NamedTuple):
    """A device has no more cases; ``error`` is what broke its thread, a bug of the launcher."""

    error: BaseException | None


class Interrupted(NamedTuple):
    """The user asked to stop; ``reason`` names the signal."""

    reason: str


Happening = PhaseStarted | WorkerRestarted | CaseEnded | WorkerLog | LaneEnded | Interrupted
