"""Crews of gloo ranks and tasks for them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from backends.torch.collective.crew import Crew
from backends.torch.collective.kernel import CollectiveKernel
from backends.torch.collective.starting import World
from suite.collectives.choice import Choice
from suite.collectives.message import message
from suite.collectives.names import Algo, Op
from suite.collectives.tolerance import tolerance
from suite.collectives.transport import Transport
from suite.jobs.collective import Task
from suite.measure.verify import check, expect, probe
from suite.measurement import Check
from suite.ranks.keeper import RANK_MODULE

LEFT_FREE = Choice()
STRANGE_RANK = "tests.backends.collective.strange_rank"


def world(ranks: int) -> World:
    return World(Transport.HOST, ("cpu",) * ranks)


@contextmanager
def crew_of(ranks: int, module: str = RANK_MODULE) -> Iterator[Crew]:
    crew = Crew(world(ranks), module)
    try:
        yield crew
    finally:
        crew.close()


def task(
    op: Op,
    ranks: int,
    size: int,
    *,
    fmt: str = "fp32",
    own: Algo | None = None,
    in_place: bool = True,
    asked: Choice = LEFT_FREE,
) -> Task:
    implementation, choice = ("own", Choice(own)) if own else ("library", asked)
    return Task(message(op, fmt, ranks, size), implementation, choice, in_place, Transport.HOST)


def prepared(crew: Crew, asked: Task, seed: int = 3) -> CollectiveKernel:
    return CollectiveKernel(crew, asked, crew.group("gloo", ()), "gloo", seed)


def checked(kernel: CollectiveKernel, seed: int, run: Callable[[], None] | None = None) -> Check:
    """As the measuring spine does it: fresh data, poison, launch, compare."""
    kernel.refill(seed)
    given = kernel.task.message
    expected = expect(kernel, [probe(kernel.output_shape, 0, 4, seed)])
    allowed = tolerance(given.op, given.format, given.ranks)
    return check(kernel, expected, allowed, run or (lambda: kernel.enqueue(0)))
