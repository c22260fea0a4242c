"""The settings of the collective job, and what of them names nothing that can be measured."""

from dataclasses import dataclass, field
from typing import Any

from suite.collectives.choice import LIBRARY
from suite.collectives.names import Algo, Op, Proto
from suite.collectives.number_format import NUMBER_FORMATS
from suite.errors import UsageError, nearest
from suite.jobs.collective.sizes import parse_size
from suite.jobs.collective.task import OWN
from suite.settings import JobSettings

OPS = (Op.ALL_REDUCE, Op.ALL_GATHER, Op.REDUCE_SCATTER, Op.ALL_TO_ALL, Op.BROADCAST, Op.SEND_RECV)
ALGOS = (LIBRARY, Algo.RING, Algo.TREE)
PROTOS = (LIBRARY, Proto.LL, Proto.LL128, Proto.SIMPLE)
IMPLEMENTATIONS = (LIBRARY, OWN)
LARGEST_WORLD = 256  # ranks that one command starts, each a process


@dataclass
class CollectiveSettings(JobSettings):
    """Axes of the collective job; each list is an axis, and combinations that do not exist are left out.

    ``sizes`` are message bytes, the larger of what a rank sends and receives (``8``, ``64KiB``, ``1GiB``); one that ranks and
    elements do not divide is rounded down.  ``world_sizes`` are numbers of ranks.  ``in_place`` has the result replace the
    data, where an operation can do both.

    ``implementations``: ``library`` is NCCL or RCCL on GPUs, gloo or XLA on processors, ``own`` roofbench's ring and double
    binary tree over sends and receives (on XLA the ring alone).  ``algos`` and ``protos`` are what the library is made to use
    and ``library`` leaves it the choice; gloo and XLA cannot be told.  ``own`` has the algorithms that are named.

    ``share_device`` puts all ranks on one GPU, which proves that things work: no time of it is a bandwidth.

    ``joined`` is set by a run that torchrun, srun or mpirun started: how many ranks there are, of which it starts none.  In a
    file that repeats such a run it is how many there have to be, and ``world_sizes`` are then as they stand.  ``joined_by`` and
    ``joined_per_host`` are set with it: which of the three started them, and how many on each host, 0 where that is not known.
    """

    name: str = "collective"
    ops: list[str] = field(default_factory=lambda: [op.value for op in OPS])
    sizes: list[str] = field(default_factory=lambda: ["1KiB", "1MiB", "64MiB"])
    formats: list[str] = field(default_factory=lambda: ["fp32"])
    world_sizes: list[int] = field(default_factory=lambda: [2])
    implementations: list[str] = field(default_factory=lambda: list(IMPLEMENTATIONS))
    algos: list[str] = field(default_factory=lambda: [str(algo) for algo in ALGOS])
    protos: list[str] = field(default_factory=lambda: [LIBRARY])
    in_place: list[bool] = field(default_factory=lambda: [True])
    share_device: bool = False
    joined: int = 0
    joined_by: str = ""
    joined_per_host: int = 0


def check_settings(settings: CollectiveSettings) -> None:
    """Raise ``UsageError`` for unknown names, empty axes, worlds without a peer, and sizes that are none."""
    axes: dict[str, tuple[Any, ...]] = {
        "ops": OPS, "formats": tuple(NUMBER_FORMATS), "implementations": IMPLEMENTATIONS, "algos": ALGOS, "protos": PROTOS,
        "in_place": (False, True),
    }  # fmt: skip
    for axis, valid in axes.items():
        names = [str(each) for each in valid]
        for given in getattr(settings, axis):
            if given not in valid:
                raise UsageError(f"unknown {axis.removesuffix('s')} '{given}' in jobs.collective.{axis}{nearest(given, names)}")
        if not getattr(settings, axis):
            raise UsageError(f"jobs.collective.{axis} is empty; name at least one of {', '.join(names)}")
    for axis, example in (("sizes", "[8,64KiB]"), ("world_sizes", "[2,4]")):
        if not getattr(settings, axis):
            raise UsageError(f"jobs.collective.{axis} is empty; write for instance jobs.collective.{axis}={example}")
    for size in settings.sizes:
        parse_size(size)
    if settings.joined < 0 or settings.joined == 1:
        raise UsageError(
            f"jobs.collective.joined={settings.joined} is no number of ranks that a launcher started; leave it out: the "
            "run sets it"
        )
    for ranks in settings.world_sizes:
        _check_world(ranks, settings.joined)
    if settings.implementations == [OWN] and settings.algos == [LIBRARY]:
        raise UsageError("jobs.collective.implementations=[own] needs an algorithm; write jobs.collective.algos=[ring,tree]")


def _check_world(ranks: int, joined: int) -> None:
    if ranks < 2:
        raise UsageError(f"jobs.collective.world_sizes has {ranks}: a rank alone moves nothing over a link; take 2 or more")
    if ranks > (joined or LARGEST_WORLD):
        limit = f"{joined} ranks were joined" if joined else f"one command starts at most {LARGEST_WORLD} ranks"
        raise UsageError(f"jobs.collective.world_sizes has {ranks}; {limit}")
