"""What a launcher says to each process that it starts: who it is among how many, and where rank 0 is."""

import hashlib
import re
from collections.abc import Mapping
from typing import NamedTuple

from suite.errors import UsageError

DEFAULT_PORT = 29_500  # torch.distributed's
LAST_PORT = 2**16 - 2  # the hub listens above it
LOOPBACK = "127.0.0.1"
TORCHRUN, SRUN, MPIRUN = "torchrun", "srun", "mpirun"


class Part(NamedTuple):
    """Which of how many processes of a launch this one is.

    ``watched`` tells a launcher's own processes, of which many end all when one fails, from variables that are merely set;
    ``alone`` is one that is known to share its host with no other; ``per_host`` how many ranks each host has, 0 where that
    is not known or differs.
    """

    launcher: str
    rank: int
    world: int
    watched: bool
    alone: bool = False
    per_host: int = 0


class Launched(NamedTuple):
    """``address`` and ``port`` are where ranks meet; ``job`` is the same for the processes of one launch alone."""

    launcher: str
    rank: int
    world: int
    local_rank: int
    address: str
    port: int
    job: str


class _Names(NamedTuple):
    """The variables of one launcher.  ``same_host`` are two that are equal where all ranks are on one host."""

    launcher: str
    rank: str
    world: str
    local_rank: str
    same_host: tuple[str, str]
    job: tuple[str, ...]


_KNOWN = (
    _Names(TORCHRUN, "RANK", "WORLD_SIZE", "LOCAL_RANK", ("WORLD_SIZE", "LOCAL_WORLD_SIZE"), ("TORCHELASTIC_RUN_ID",)),
    _Names(
        MPIRUN,
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
        ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"),
    ),
    _Names(MPIRUN, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", ("PMI_SIZE", "MPI_LOCALNRANKS"), ("PMI_ID", "HYDI_CONTROL_FD")),
    _Names(
        SRUN,
        "SLURM_PROCID",
        "SLURM_STEP_NUM_TASKS",  # of a step: a batch script has a rank too, and is none
        "SLURM_LOCALID",
        ("SLURM_STEP_NUM_NODES", ""),
        ("SLURM_JOB_ID", "SLURM_STEP_ID"),
    ),
)


def part(environment: Mapping[str, str]) -> Part | None:
    """Who this process is; ``None`` where no launcher started it, or it started only one.

    Raises ``UsageError`` for variables that contradict each other.
    """
    names = _names(environment)
    if names is None:
        return None
    rank, world = _number(environment, names.rank), _number(environment, names.world)
    if world < 2:
        return None
    if not 0 <= rank < world:
        raise UsageError(f"{names.rank}={rank} is no rank of {names.world}={world}; ranks count from 0")
    watched = any(name in environment for name in names.job)
    return Part(names.launcher, rank, world, watched, _alone(environment, names, world), _per_host(environment, names, world))


def launched(environment: Mapping[str, str]) -> Launched | None:
    """``part`` with where the ranks meet; ``UsageError`` also where nothing says where rank 0 is, or half of who this is."""
    names, own = _names(environment), part(environment)
    if names is None:
        _refuse_half(environment)
    if names is None or own is None:
        return None
    local = _number(environment, names.local_rank) if names.local_rank in environment else 0
    port = _number(environment, "MASTER_PORT") if "MASTER_PORT" in environment else DEFAULT_PORT
    if not 0 < port <= LAST_PORT:
        raise UsageError(
            f"MASTER_PORT={port} is no port with another above it, where the ranks meet; it may be from 1 to {LAST_PORT}"
        )
    job = [names.launcher, str(own.world), str(port), *(environment.get(name, "") for name in names.job)]
    digest = hashlib.sha256("\0".join(job).encode()).hexdigest()[:16]
    return Launched(own.launcher, own.rank, own.world, local, _address(environment, names), port, digest)


def _refuse_half(environment: Mapping[str, str]) -> None:
    """``UsageError`` for a world without a rank: each process that has it would measure all of it by itself."""
    world = environment.get("WORLD_SIZE", "1")
    if "RANK" not in environment and world != "1":
        raise UsageError(
            f"WORLD_SIZE={world} is set and RANK is not: a launcher sets both; start the run under {TORCHRUN}, or unset "
            "WORLD_SIZE"
        )


def _alone(environment: Mapping[str, str], names: _Names, world: int) -> bool:
    """Of Slurm the number of hosts is known, of the others how many ranks are on this one."""
    whole, here = names.same_host
    return environment.get(here) == "1" if here else environment.get(whole) == str(world)


def _per_host(environment: Mapping[str, str], names: _Names, world: int) -> int:
    """Of Slurm from the number of hosts, of the others from that of ranks on this one; 0 where hosts differ or nobody says."""
    whole, here = names.same_host
    told = environment.get(here or whole, "")
    count = int(told) if told.isdecimal() else 0
    if count == 0 or world % count:
        return 0
    return count if here else world // count


def _names(environment: Mapping[str, str]) -> _Names | None:
    return next((each for each in _KNOWN if each.rank in environment and each.world in environment), None)


def _address(environment: Mapping[str, str], names: _Names) -> str:
    """``MASTER_ADDR``; else the loopback where all are on one host, else the first host of a Slurm step."""
    given = environment.get("MASTER_ADDR")
    if given:
        return given
    one, other = (environment.get(name) for name in names.same_host)
    if one is not None and one == (other or "1"):
        return LOOPBACK
    nodes = environment.get("SLURM_STEP_NODELIST") if names.launcher == SRUN else None
    if nodes:
        return first_host(nodes)
    raise UsageError(
        f"{names.launcher} started {names.world}={environment[names.world]} ranks and does not say where rank 0 is; "
        "set MASTER_ADDR to its host (mpirun -x MASTER_ADDR=HOST)"
    )


def first_host(nodes: str) -> str:
    """The first of Slurm's ``node[07-09,12],other``: ``node07``."""
    found = re.match(r"(?P<name>[^\[,]+)(?:\[(?P<first>\d+)[^\]]*\])?(?P<rest>[^,]*)", nodes.strip())
    if found is None:
        raise UsageError(f"SLURM_STEP_NODELIST={nodes} names no host; set MASTER_ADDR to rank 0's")
    return f"{found['name']}{found['first'] or ''}{found['rest']}"


def _number(environment: Mapping[str, str], name: str) -> int:
    try:
        return int(environment[name])
    except ValueError:
        raise UsageError(f"{name}={environment[name]} is not a number; the launcher sets it, or unset it") from None
