"""What the launcher tells whoever runs it, beside the events that are passed on as they are."""

from typing import Any, NamedTuple

from suite.events import PhaseStarted, SearchRound, WorkerRestarted
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


class SearchTold(NamedTuple):
    """A search came to its next round, or past the last; ``state`` (JSON) is what going on with it needs, kept as ``key``.

    ``passed_s`` is what looking was predicted to take, told once it is over.
    """

    round: SearchRound | None
    slot: int
    key: str
    state: dict[str, Any]
    passed_s: float = 0.0


class SearchEnded(NamedTuple):
    """A search is over with everything that it had to measure; ``cases`` is how many that were."""

    key: str
    cases: int


class LaneEnded(NamedTuple):
    """A device has no more cases; ``error`` is what broke its thread, a bug of the launcher."""

    error: BaseException | None


class Interrupted(NamedTuple):
    """The user asked to stop; ``reason`` names the signal."""

    reason: str


Happening = PhaseStarted | WorkerRestarted | CaseEnded | SearchTold | SearchEnded | WorkerLog | LaneEnded | Interrupted
