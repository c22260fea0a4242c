"""The processors that OpenMP leaves to its threads, asked of the threads themselves: several variables decide it together."""

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from suite.errors import UsageError

TASKS = Path("/proc/self/task")
BINDING = ("GOMP_CPU_AFFINITY", "OMP_PLACES", "OMP_PROC_BIND", "KMP_AFFINITY", "KMP_HW_SUBSET")


def processors_at_work(work: Callable[[], object]) -> int | None:
    """On how many processors this thread may run, and those that ``work`` starts; ``None`` where the system does not say.

    Where it starts none they have been started before, and are looked at among all others.
    """
    if not TASKS.exists():
        return None
    before = _tasks()
    work()
    started = _tasks() - before
    tasks = started | {threading.get_native_id()} if started else before
    return len(set[int]().union(*(_allowed(task) for task in tasks)))


def refuse_crowded(threads: int, processors: int | None, variables: Mapping[str, str]) -> None:
    """Threads that share a processor take turns: the CPU would be measured at a fraction of its speed.

    Raises ``UsageError``, which names the variables that are set.
    """
    if processors is None or processors >= threads:
        return
    named = " and ".join(f"{name}={variables[name]}" for name in BINDING if name in variables)
    said, remedy = (f"with {named} OpenMP", "unset what binds them") if named else ("OpenMP", "let more be used")
    left = "1 processor" if processors == 1 else f"{processors} processors"
    raise UsageError(
        f"{said} leaves {left} to the {threads} threads that backend cpu uses; {remedy}, or set "
        f"backends.cpu.options.threads={processors}"
    )


def _tasks() -> set[int]:
    return {int(each.name) for each in TASKS.iterdir()}


def _allowed(task: int) -> set[int]:
    try:
        return os.sched_getaffinity(task)
    except ProcessLookupError:  # it has ended since
        return set()
