"""Why a worker is gone: its exit status, its last words, and the kernel's count of out-of-memory kills."""

import signal
from dataclasses import dataclass
from pathlib import Path

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


def oom_kill_count(root: Path = Path("/")) -> int:
    """Processes the kernel has killed for lack of memory: in this process's control group, or on the whole machine.

    0 where neither counter can be read.
    """
    for path in [*_cgroup_counters(root), root / "proc/vmstat"]:
        count = _counter(path)
        if count is not None:
            return count
    return 0


def _cgroup_counters(root: Path) -> list[Path]:
    """Counter files of this process's control group, versions 2 and 1, where the host or the container has them."""
    paths = []
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, group = line.split(":", 2)
        inside = group.lstrip("/")
        if not controllers:
            paths += [root / "sys/fs/cgroup" / inside / "memory.events", root / "sys/fs/cgroup/memory.events"]
        elif "memory" in controllers.split(","):
            base = root / "sys/fs/cgroup/memory"
            paths += [base / inside / "memory.oom_control", base / "memory.oom_control"]
    return paths


def _counter(path: Path) -> int | None:
    for line in _lines(path):
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no name
        return f"signal {number}"
