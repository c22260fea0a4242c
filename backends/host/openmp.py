"""The cores that OpenMP leaves to its threads, asked of the threads themselves: several variables decide it together."""

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from backends.host.cgroup import ROOT
from backends.host.cpuinfo import places
from suite.errors import UsageError

TASKS = Path("/proc/self/task")
BINDING = ("GOMP_CPU_AFFINITY", "OMP_PLACES", "OMP_PROC_BIND", "KMP_AFFINITY", "KMP_HW_SUBSET")


def cores_at_work(work: Callable[[], object], root: Path = ROOT) -> int | None:
    """On how many physical cores this thread may run, and those that ``work`` starts; ``None`` where the system does not say.

    Where it starts none they have been started before, and are looked at among all others.  Threads on the siblings of one
    core share what multiplies.
    """
    if not TASKS.exists():
        return None
    before = _tasks()
    work()
    started = _tasks() - before
    tasks = started | {threading.get_native_id()} if started else before
    return len(places(set[int]().union(*(_allowed(task) for task in tasks)), root))


def refuse_crowded(threads: int, cores: int | None, variables: Mapping[str, str]) -> None:
    """Threads that share a core take turns: the CPU would be measured at a fraction of its speed.

    Raises ``UsageError``, which names the variables that are set.
    """
    if cores is None or cores >= threads:
        return
    named = " and ".join(f"{name}={variables[name]}" for name in BINDING if name in variables)
    said, remedy = (f"with {named} OpenMP", "unset what binds them") if named else ("OpenMP", "let more be used")
    left = "1 core" if cores == 1 else f"{cores} cores"
    raise UsageError(
        f"{said} leaves {left} to the {threads} threads that backend cpu uses; {remedy}, or set "
        f"backends.cpu.options.threads={cores}"
    )


def _tasks() -> set[int]:
    return {int(each.name) for each in TASKS.iterdir()}


def _allowed(task: int) -> set[int]:
    try:
        return os.sched_getaffinity(task)
    except ProcessLookupError:  # it has ended since
        return set()
