"""What makes NCCL use an algorithm and a protocol, and whether it did."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from backends.failures import Classified
from suite.backend import Failure
from suite.collectives.choice import Choice, ll128_supported
from suite.collectives.forcing import ALGO, OBSERVING, PROTO, forcing
from suite.collectives.log.choices import LoggedChoice
from suite.collectives.log.observed import Observation, observed
from suite.collectives.log.reader import DebugLog
from suite.collectives.names import Algo, Op, Proto
from suite.collectives.transport import Transport
from suite.collectives.version import NcclVersion
from suite.jobs.collective import Task
from suite.jobs.collective.task import OWN
from suite.outcome import Outcome

HOST_ID = "NCCL_HOSTID"
# NCCL refuses two ranks on one device of one host.  With a host name each they talk over sockets; few channels keep the
# kernels of all of them on the device at once, without which none would go on.
_SHARED = {
    "NCCL_P2P_DISABLE": "1",
    "NCCL_SHM_DISABLE": "1",
    "NCCL_NET": "Socket",
    "NCCL_MAX_CTAS": "4",
}


def start_environment(transport: Transport, rank: int, joined: bool = False) -> dict[str, str]:
    """What a rank's process is started with.  Reduction in the switch stays off: its busbw is not that of a link.

    Ranks that this run starts are all of this host, so that what they listen on is its loopback.  Those that were joined
    may be anywhere: their keepers know the interface.
    """
    gloo = {} if joined else {"GLOO_SOCKET_IFNAME": "lo"}
    if transport is Transport.HOST:
        return gloo
    nccl = {} if joined else {"NCCL_SOCKET_IFNAME": "lo"}
    shared = {**_SHARED, HOST_ID: f"roofbench-rank-{rank}"} if transport is Transport.SHARED_GPU else {}
    return {**gloo, **OBSERVING, **nccl, "NCCL_NVLS_ENABLE": "0", **shared}


def group_environment(task: Task, version: NcclVersion) -> tuple[tuple[str, str | None], ...]:
    """The variables that the process group is made with, those of another choice taken away."""
    choice = Choice() if task.implementation == OWN else task.choice
    variables: dict[str, str | None] = {ALGO: None, PROTO: None}
    variables |= forcing(version, task.op, choice, ll128=True)
    return tuple(sorted(variables.items()))


def variables_set(transport: Transport, environment: Iterable[tuple[str, str | None]], joined: bool = False) -> dict[str, str]:
    """What is set of NCCL for the ranks and for a group of this ``environment``, less the name that a rank has for itself."""
    every = {**start_environment(transport, 0, joined), **dict(environment)}
    return {name: value for name, value in sorted(every.items()) if name.startswith("NCCL_") and name != HOST_ID and value}


def nccl_version() -> NcclVersion:
    """Of the library that torch has loaded."""
    return NcclVersion(*torch.cuda.nccl.version()[:3])


def refuse_ll128(task: Task, log: DebugLog, capability: tuple[int, int]) -> None:
    """Raise unless the library itself would use LL128 over these links: forced elsewhere it corrupts data."""
    graph = log.graph(Algo.RING)
    if task.choice.proto is not Proto.LL128:
        return
    if graph is None:
        raise _unsupported("the library's log shows no links, so that it is not known whether LL128 is safe")
    if not ll128_supported(10 * capability[0] + capability[1], graph.intra_path, graph.inter_path):
        raise _unsupported(f"ll128 over {graph.intra_path}/{graph.inter_path} corrupts data on compute capability {capability}")


def observation(task: Task, log: DebugLog, choices: tuple[LoggedChoice, ...]) -> Observation:
    """What ran of the library for this message, by its own log."""
    said = DebugLog(version=log.version, tuner_plugin=log.tuner_plugin, choices=choices)
    return observed(said, task.op, task.message.message_bytes, task.ranks, task.choice)


def refuse_other(task: Task, found: Observation) -> None:
    """Raise where something else ran than was asked for; of a forced choice, also where nobody saw that it ran."""
    chosen = task.implementation != OWN and task.choice != Choice()
    if found.honoured is False or (chosen and found.honoured is None):
        raise Classified(Failure(Outcome.NOT_HONOURED, found.reason or "", fatal=False))


def described(found: Observation) -> Mapping[str, Any]:
    """What is stored of an observation."""
    ran = [{"algo": each.algo, "proto": each.proto, "channels": each.channels, "kernel": each.kernel} for each in found.ran]
    return {"observed": ran, "honoured": found.honoured, **({"not_observed": found.reason} if found.reason else {})}


def own_model(log: DebugLog, op: Op) -> dict[str, list[float]]:
    """The library's model of this communicator: latency in seconds and bytes per second, of what it has enabled."""
    return {
        f"{algo}/{proto}": [cost.latency_s, cost.bandwidth_bytes_s]
        for (each, algo, proto), cost in log.matrix.items()
        if each is op and cost.bandwidth_bytes_s
    }


def _unsupported(reason: str) -> Classified:
    return Classified(Failure(Outcome.UNSUPPORTED, reason, fatal=False))
