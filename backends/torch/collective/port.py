"""The collective job on torch devices: which cases can run, and how one is made ready on a crew."""

import sys
from collections.abc import Callable

import torch
import torch.distributed as dist

from backends.torch.collective import forced
from backends.torch.collective.crew import Crew
from backends.torch.collective.kernel import CollectiveKernel
from backends.torch.collective.sampler import SlowestRankSampler
from backends.torch.collective.starting import World
from backends.torch.target import Target
from suite.backend import Kernel, Sampler
from suite.case import Case
from suite.collectives.names import Proto
from suite.collectives.transport import Transport
from suite.jobs.collective import Task
from suite.ranks.places import Places

Start = Callable[[World], Crew]


class Crews:
    """The crew of this process.  One at a time: ranks are processes with memory of their own, and cases come world by world."""

    def __init__(self, start: Start = Crew) -> None:
        self.start = start
        self._crew: Crew | None = None

    def of(self, world: World) -> Crew:
        """The crew of ``world``: the present one, or another in its place.

        A rank that has died since the case before is no fault of this one.
        """
        if self._crew is not None and (lost := self._crew.lost):
            sys.stderr.write(f"{lost} between two cases; its world is started anew\n")
            self._crew.kill()  # to leave in order takes all of them
        if self._crew is None or not self._crew.alive or self._crew.world != world:
            self.dismiss()
            self._crew = self.start(world)
        return self._crew

    def dismiss(self) -> None:
        """Let the present crew go."""
        if self._crew is not None:
            self._crew.close()
        self._crew = None


CREWS = Crews()


def reason(case: Case, target: Target) -> str | None:
    """Why this case cannot run; ``None`` when it can."""
    task, regime = Task.of(case), case.regime
    if (regime.cache, regime.dispatch) != ("warm", "call"):
        return f"collectives are timed by what every rank waits, warm/{regime.load}/call, not {regime.label}"
    if not dist.is_available():
        return "this build of torch has no torch.distributed"
    return task.misfit() or _unjoined(task) or (_on_host(task, target) if target.kind == "cpu" else _on_devices(task, target))


def prepare(case: Case, target: Target, sets: int, seed: int) -> CollectiveKernel:
    """Start the ranks or take those that are there, make the process group, and send exact integers once."""
    task = Task.of(case)
    crew = CREWS.of(World(task.transport, devices(task, target), task.joined))
    if target.kind == "cpu":
        return CollectiveKernel(crew, task, crew.group("gloo", ()), f"gloo of torch {torch.__version__}", seed)
    version = forced.nccl_version()
    if task.choice.proto is Proto.LL128:
        unforced = task._replace(choice=task.choice._replace(algo=None, proto=None))
        known = crew.log("nccl", forced.group_environment(unforced, version))
        forced.refuse_ll128(task, known, torch.cuda.get_device_capability(target.device))
    group = crew.group("nccl", forced.group_environment(task, version))
    name = group.log.library or ("RCCL" if torch.version.hip else "NCCL")
    return CollectiveKernel(crew, task, group, f"{name} {version}", seed)


def sampler(kernel: Kernel) -> Sampler:
    """The sampler of a prepared case."""
    assert isinstance(kernel, CollectiveKernel), "prepared by another job"
    return SlowestRankSampler(kernel)


def _unjoined(task: Task) -> str | None:
    """Why ranks that a launcher started are not there; ``None`` where they are, or none are asked for."""
    if not task.joined:
        return None
    places = Places.told()
    if places is None:
        return "this case is one of ranks that torchrun, srun or mpirun starts, and none did; start the run under one of them"
    if task.ranks > len(places.ranks):
        return f"this case takes {task.ranks} ranks and {places.launcher} started {len(places.ranks)}; start as many"
    return None


def _on_host(task: Task, target: Target) -> str | None:
    if task.transport is not Transport.HOST:
        return f"ranks on a CPU talk over the host, not over {task.transport}"
    if not dist.is_gloo_available():
        return "this build of torch has no gloo"
    return f"gloo does not move {task.message.format}" if task.message.format.startswith("fp8") else None


def _on_devices(task: Task, target: Target) -> str | None:
    if task.transport is Transport.HOST:
        return "ranks on a GPU talk over device_link or shared_gpu, not over the host"
    if not dist.is_nccl_available():
        return "this build of torch has no NCCL"
    if target.is_amd and task.choice.proto is Proto.LL128:
        return "whether ll128 keeps data whole over links between AMD's devices is RCCL's to tell; leave the protocol to it"
    seen = torch.cuda.device_count()
    if task.joined:
        return None
    if task.transport is Transport.DEVICE_LINK and task.ranks > seen:
        return (
            f"{task.ranks} ranks need a device each and torch sees {seen}; jobs.collective.share_device=true has them share "
            "one, which proves that things work and gives no bandwidth"
        )
    return None


def devices(task: Task, target: Target) -> tuple[str, ...]:
    """The device of each rank: the selected one, and those after it where every rank has its own."""
    if target.kind == "cpu":
        return ("cpu",) * task.ranks
    places = Places.told() if task.joined else None
    if places is not None:
        return tuple(f"cuda:{place.local_rank}" for place in places.ranks[: task.ranks])
    first = target.device.index or 0
    apart = task.transport is Transport.DEVICE_LINK
    return tuple(f"cuda:{(first + rank * apart) % torch.cuda.device_count()}" for rank in range(task.ranks))
