"""Why a worker is gone: its exit status, its last words, and the kernel's count of out-of-memory kills."""

import signal
from dataclasses import dataclass

from suite.launcher.output import last_words
from suite.outcome import Outcome
from suite.reason import one_line


@dataclass(frozen=True, slots=True)
class Death:
    """What a worker's end means for the case it was serving; ``reason`` is kept as one short line of plain text."""

    outcome: Outcome
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", one_line(self.reason))


def diagnose(status: int, doing: str, log: str, oom_kills: int) -> Death:
    """Explain an exit ``status`` (negative: the signal) while ``doing`` something.

    ``oom_kills`` is by how much the kernel's counter rose during the worker's life.
    """
    words = last_words(log)
    said = f"; last log line: {words}" if words else "; it printed nothing"
    if status == -signal.SIGKILL and oom_kills > 0:
        return Death(Outcome.OUT_OF_MEMORY, f"the kernel killed the worker for lack of host memory while {doing}{said}")
    if status < 0:
        return Death(Outcome.CRASHED, f"worker died with {_signal_name(-status)} while {doing}{said}")
    return Death(Outcome.CRASHED, f"worker left with status {status} while {doing}{said}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no name
        return f"signal {number}"
