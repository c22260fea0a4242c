"""The collective job on XLA: which cases can run, and how one is made ready."""

from collections.abc import Mapping, Sequence
from typing import Any

from backends.jax.collective.crew import Crews
from backends.jax.collective.kernel import XlaCollective
from backends.jax.collective.orders import Sample
from backends.jax.target import Target
from backends.launches.host_sampler import clock_resolution_s
from suite.case import Case
from suite.collectives.names import Op
from suite.collectives.transport import Transport
from suite.jobs.collective import Task

CREWS = Crews()
AT_ONCE = 4096  # iterations in one order


def reason(case: Case, target: Target) -> str | None:
    """Why this case cannot run; ``None`` when it can."""
    task, regime = Task.of(case), case.regime
    if (regime.cache, regime.dispatch) != ("warm", "call"):
        return f"collectives are timed by what every rank waits, warm/{regime.load}/call, not {regime.label}"
    if target.kind != "cpu" or task.transport is not Transport.HOST:
        return (
            "XLA's collectives are measured over forced devices of the host; ask for them with "
            "+backends.xla.options.platform=cpu"
        )
    if task.joined:
        return "ranks that a launcher started are torch's: XLA has its devices in one process"
    return misfit(task)


def misfit(task: Task) -> str | None:
    """Why XLA on a CPU has no such collective; ``None`` where it has."""
    if task.op is Op.BROADCAST:
        return "XLA has no collective broadcast on a CPU"
    if task.in_place and task.op in (Op.ALL_GATHER, Op.REDUCE_SCATTER):
        return f"XLA's {task.op} has another shape than its data: out of place only, jobs.collective.in_place=[false]"
    return task.misfit()


def prepare(case: Case, target: Target, sets: int, seed: int) -> XlaCollective:
    """Start the process with the devices or take the one that is there, compile, and send exact integers once."""
    task = Task.of(case)
    return XlaCollective(CREWS.of(task.ranks), task, seed)


class ProgramSampler:
    """Times a program over all ranks from the call until every rank has its result."""

    method = "program over all ranks"
    launches = 1

    def __init__(self, kernel: XlaCollective) -> None:
        self._kernel = kernel
        self.resolution_s = clock_resolution_s()
        fresh = (
            {"untimed": "a copy of the data before each iteration, whose memory the result takes"}
            if kernel.task.in_place
            else {}
        )
        self.details: Mapping[str, Any] = {"sets": 1, "flush_bytes": 0, "ranks": kernel.task.ranks, **fresh}

    def sample(self, count: int) -> Sequence[int]:
        durations_ns: list[int] = []
        while len(durations_ns) < count:
            durations_ns += self._kernel.crew.ask(Sample(min(count - len(durations_ns), AT_ONCE)))
        return durations_ns

    def replay(self) -> None:
        self._kernel.enqueue(0)

    def close(self) -> None:
        """The kernel owns the buffers."""


def sampler(kernel: XlaCollective) -> ProgramSampler:
    """The sampler of a prepared case."""
    return ProgramSampler(kernel)
