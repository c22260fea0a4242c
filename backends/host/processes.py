"""Whose work this machine is doing: the processes of this run, and the load that comes from all others."""

import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from backends.host.cgroup import ROOT
from suite.ranks.places import VARIABLE
from suite.telemetry import LOAD_SPAN_S

# Below a tenth of a CPU the load is the operating system's own housekeeping.
NEGLIGIBLE_CPUS = 0.1


class _Process(NamedTuple):
    parent: int
    ticks: int


class _Snapshot(NamedTuple):
    at_s: float
    busy: int
    own: int


def run_family(root: Path = ROOT) -> frozenset[int]:
    """Process ids of this run: this process, the one that started it, and all that either of them started.

    Where a launcher started the ranks, all that it started here is of the run.  A process whose parent is gone (adopted by
    process 1) has only its own children.
    """
    return _family(_table(root))


class ForeignLoad:
    """Measures how much the CPUs of this process's affinity mask were used by others since the first ``start``."""

    def __init__(self, cpus: Collection[int], cores: int, threads: int, root: Path = ROOT) -> None:
        self._cpus = frozenset(cpus)
        self._cores = cores
        self._threads = threads
        self._root = root
        self._began: _Snapshot | None = None

    def start(self) -> None:
        """Begin, at the first of several calls: each window of a burst is too short, all of them with their idle times are not.

        This process is idle between them: whoever works then works beside the windows too.
        """
        self._began = self._began or self._snapshot()

    def cpus_used(self) -> float | None:
        """CPUs' worth of time that others used since the first ``start``; ``None`` before it, or too soon to tell."""
        if self._began is None:
            return None
        now = self._snapshot()
        elapsed_s = now.at_s - self._began.at_s
        if elapsed_s < LOAD_SPAN_S:
            return None
        ticks = (now.busy - self._began.busy) - max(0, now.own - self._began.own)
        return max(0.0, ticks / os.sysconf("SC_CLK_TCK") / elapsed_s)

    def processes(self) -> int | None:
        """How many CPUs' worth of other work took cores that this process's threads wanted; 0 when all found room."""
        used = self.cpus_used()
        if used is None:
            return None
        crowded_out = used + self._threads - self._cores
        return max(1, round(crowded_out)) if min(used, crowded_out) > NEGLIGIBLE_CPUS else 0

    def _snapshot(self) -> _Snapshot:
        table = _table(self._root)
        own = sum(table[pid].ticks for pid in _family(table) if pid in table)
        return _Snapshot(time.monotonic(), self._busy_ticks(), own)

    def _busy_ticks(self) -> int:
        """Ticks not idle on the CPUs of interest: user, nice, system, irq, softirq and stolen by the hypervisor."""
        total = 0
        for line in (self._root / "proc/stat").read_text().splitlines():
            name, *fields = line.split()
            if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in self._cpus:
                user, nice, system, _idle, _iowait, irq, softirq, steal = (int(field) for field in fields[:8])
                total += user + nice + system + irq + softirq + steal
        return total


def _family(table: dict[int, _Process]) -> frozenset[int]:
    own = os.getpid()
    parent = table[own].parent if own in table else 0
    members = {own, parent} if parent > 1 else {own}
    if VARIABLE in os.environ and parent in table and table[parent].parent > 1:
        members.add(table[parent].parent)
    grown = True
    while grown:
        children = {pid for pid, process in table.items() if process.parent in members} - members
        members |= children
        grown = bool(children)
    return frozenset(members)


def _table(root: Path) -> dict[int, _Process]:
    """Parent and used ticks of every visible process."""
    table = {}
    for path in (root / "proc").glob("[0-9]*/stat"):
        try:
            # The command may hold spaces and parentheses: the fields start behind the last one.
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        table[int(path.parent.name)] = _Process(parent=int(fields[1]), ticks=int(fields[11]) + int(fields[12]))
    return table
