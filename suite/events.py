"""What a running sweep tells whoever watches it (the progress display, a log, a test)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from suite.case import Case
from suite.rows import ResultRow


class SweepStarted(NamedTuple):
    """``total`` cases are planned, of which ``already_done`` were finished by an earlier attempt.

    ``devices`` tells those of a run on several apart, by slot: ``xla``, or ``device=2, cuda`` where a device is asked for by
    another number than its slot.
    """

    run: str
    total: int
    already_done: int
    devices: Mapping[int, str] = MappingProxyType({})


class PhaseStarted(NamedTuple):
    """A case entered a phase: ``compile``, ``verify`` or ``measure``."""

    slot: int
    case: Case
    phase: str


class SearchRound(NamedTuple):
    """A search looks at ``contenders`` candidates, in round ``number`` of ``of`` (0: they are made ready).

    ``ahead`` is the shape that is ahead so far, empty before any was looked at, and ``about_flop_s`` what its latest,
    unverified look was like in operations per second of ``format``; ``None`` before a part of the run has looked at it.
    """

    slot: int
    subject: str
    format: str
    number: int
    of: int
    contenders: int
    ahead: str
    about_flop_s: float | None


class CaseFinished(NamedTuple):
    """A case has been committed to the store.  ``remaining_s`` is the predicted time left, ``None`` when not known."""

    row: ResultRow
    done: int
    total: int
    remaining_s: float | None


class WorkerRestarted(NamedTuple):
    """A worker died or was killed and a new one takes over; ``reason`` is one line."""

    slot: int
    reason: str


class SweepFinished(NamedTuple):
    """All cases are stored, or the sweep stopped early; ``status`` as in ``RunInfo``.

    ``by_signal`` tells an interruption by the user from the polite end at ``max_time_s``; a signal that came when every case
    was stored leaves the run ``complete``, and ends what would follow.
    """

    run: str
    status: str
    reason: str
    by_signal: bool = False


Event = SweepStarted | PhaseStarted | SearchRound | CaseFinished | WorkerRestarted | SweepFinished
