"""NCCL's cost model rebuilt: what the library itself expects of an algorithm and protocol, and what it would choose.

    time = latency + bytes / bandwidth,    bandwidth corrected by size for a tree

On a real communicator read the table that it logs (``suite.collectives.log.matrix``) and hand it to ``predicted_s``; rebuild
it only for communicators that nobody has.  What comes of either is evidence ``modelled``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from suite.collectives.log.graphs import PLAIN_TREE, LoggedGraph
from suite.collectives.log.matrix import Cost, Key
from suite.collectives.model.constants import (
    BASE_US,
    NETWORK_US,
    NVLINK_US,
    PCI_US,
    TREE_CORRECTION,
    Constants,
    constants,
)
from suite.collectives.names import Algo, Op, Proto
from suite.collectives.version import NcclVersion
from suite.errors import UsageError

_PROTOS = tuple(Proto)
_ALGOS: dict[Op, tuple[Algo, ...]] = {
    Op.ALL_REDUCE: (Algo.TREE, Algo.RING, Algo.NVLS),
    Op.ALL_GATHER: (Algo.RING, Algo.PAT),
    Op.REDUCE_SCATTER: (Algo.RING, Algo.PAT),
    Op.BROADCAST: (Algo.RING,),
    Op.REDUCE: (Algo.RING,),
}
_PLATEAU_BYTES = 64  # per channel and rank, from which on a ring between nodes shows more latency


class Graph(NamedTuple):
    """What the library found over its links for an algorithm: channels, and the bandwidth of one, bytes per second.

    ``link_latency_s`` is that of the network between nodes.  ``plain_tree`` is a tree whose traffic between nodes all passes
    one GPU.
    """

    channels: int
    intra_bytes_s: float
    inter_bytes_s: float
    nvlink: bool = True
    link_latency_s: float = 0.0
    plain_tree: bool = False
    same_channels: bool = True


def graph_of(logged: LoggedGraph, link_latency_s: float = 0.0) -> Graph:
    """The graph of a log line; the latency of the network is not in it."""
    return Graph(
        logged.channels,
        logged.intra_bytes_s,
        logged.inter_bytes_s,
        nvlink=logged.intra_path == "NVL",
        link_latency_s=link_latency_s,
        plain_tree=logged.pattern == PLAIN_TREE,
        same_channels=logged.same_channels,
    )


@dataclass(frozen=True, slots=True)
class Communicator:
    """A communicator as the model sees it: ``ranks`` spread evenly over ``nodes``.

    Algorithms without a graph are not used, except PAT, which has the tree's.  ``channels`` are those of the communicator.
    """

    version: NcclVersion
    ranks: int
    nodes: int
    compute_capability: int
    cpu: Literal["intel", "amd", "mixed", "other"]
    channels: int
    graphs: Mapping[Algo, Graph]
    ll128: bool = True

    def __post_init__(self) -> None:
        """Refuse worlds that the model does not describe."""
        if self.ranks < 2 or self.nodes < 1 or self.ranks % self.nodes:
            raise UsageError(
                f"{self.ranks} ranks on {self.nodes} nodes: the model takes 2 ranks or more, spread evenly over nodes"
            )

    @property
    def constants(self) -> Constants:
        """Those of the version and machine."""
        return constants(self.version, self.compute_capability, self.nodes, self.cpu in ("amd", "mixed"))

    def graph(self, algo: Algo) -> Graph | None:
        """The graph that an algorithm works on."""
        return self.graphs.get(Algo.TREE if algo is Algo.PAT else algo)


class Prediction(NamedTuple):
    """What the library would choose, and how long it expects that to take, seconds."""

    algo: Algo
    proto: Proto
    time_s: float


def rebuilt(communicator: Communicator) -> dict[Key, Cost]:
    """The table of a communicator, of those algorithms that have a graph; unused ones have no bandwidth."""
    return {
        (op, algo, proto): Cost(
            _latency_us(communicator, op, algo, index) * 1e-6, _bandwidth(communicator, op, algo, index) * 1e9
        )
        for op, algos in _ALGOS.items()
        for algo in algos
        if communicator.graph(algo) is not None
        for index, proto in enumerate(_PROTOS)
    }


def predicted_s(key: Key, cost: Cost, message_bytes: int, communicator: Communicator) -> float | None:
    """Seconds that the library expects of one operation; ``None`` where it would not use the algorithm."""
    op, algo, proto = key
    latency_s, bandwidth = cost
    if not bandwidth:
        return None
    if (op, algo) == (Op.ALL_REDUCE, Algo.TREE):
        index, correction = (message_bytes >> 6).bit_length() - 1, TREE_CORRECTION[_PROTOS.index(proto)]
        bandwidth *= correction[index] if 0 <= index < len(correction) else 1.0
    if key == (Op.ALL_REDUCE, Algo.RING, Proto.SIMPLE) and communicator.nodes > 1:
        share = message_bytes // (communicator.channels * communicator.ranks)
        plateau = 1.9 if communicator.compute_capability < 80 else 1.4
        latency_s *= plateau if share >= _PLATEAU_BYTES else 1.0
    return latency_s + message_bytes / bandwidth


def cheapest(table: Mapping[Key, Cost], op: Op, message_bytes: int, communicator: Communicator) -> Prediction:
    """What the library would choose of a table, its own or a rebuilt one; of equals the first."""
    times = ((key, predicted_s(key, cost, message_bytes, communicator)) for key, cost in table.items() if key[0] is op)
    found = [Prediction(key[1], key[2], time_s) for key, time_s in times if time_s is not None]
    if not found:
        raise UsageError(f"the table has nothing for {op}: no algorithm of it is in use")
    return min(found, key=lambda each: each.time_s)


def _steps(op: Op, ranks: int) -> int:
    """How often a ring passes data on."""
    if op is Op.ALL_REDUCE:
        return 2 * (ranks - 1)
    return ranks - 1 if op in (Op.ALL_GATHER, Op.REDUCE_SCATTER) else ranks


def _bandwidth(communicator: Communicator, op: Op, algo: Algo, proto: int) -> float:
    """GB/s of message bytes."""
    if _PROTOS[proto] is Proto.LL128 and not communicator.ll128:
        return 0.0
    if algo is Algo.TREE:
        return _tree_bus(communicator, proto) / 2
    if algo is Algo.RING:
        return _ring_bus(communicator, proto) * communicator.ranks / _steps(op, communicator.ranks)
    if _PROTOS[proto] is not Proto.SIMPLE:
        return 0.0
    return _nvls(communicator) if algo is Algo.NVLS else _pat(communicator)


def _bus(communicator: Communicator, graph: Graph) -> float:
    """GB/s of all channels of a graph: within a node up to two nodes, between nodes for more."""
    return graph.channels * (graph.intra_bytes_s if communicator.nodes <= 2 else graph.inter_bytes_s) / 1e9


def _ring_bus(communicator: Communicator, proto: int) -> float:
    graph, known = communicator.graphs[Algo.RING], communicator.constants
    bus = _bus(communicator, graph)
    if _PROTOS[proto] is Proto.LL:
        return min(known.ll_max, 0.5 * bus)
    return min(0.92 * bus, graph.channels * known.ring_ll128) if _PROTOS[proto] is Proto.LL128 else bus


def _tree_bus(communicator: Communicator, proto: int) -> float:
    graph, known = communicator.graphs[Algo.TREE], communicator.constants
    bus = min(0.92 * _bus(communicator, graph), graph.channels * known.tree_max)
    if _PROTOS[proto] is Proto.LL:
        bus = min(bus / 3.8, known.ll_max)
    if _PROTOS[proto] is Proto.LL128:
        bus = min(bus * (7 / 9 if communicator.nodes == 1 else 120 / 128), graph.channels * known.tree_ll128)
    return bus * 0.85 if graph.plain_tree else bus


def _nvls(communicator: Communicator) -> float:
    """On one node only: between nodes NVLS needs a network that reduces.

    ``inter_bytes_s`` counts there too: the library's search raises it to twice the other, where no network bounds it.
    """
    graph, efficiency = communicator.graphs[Algo.NVLS], communicator.constants.nvls_efficiency
    if communicator.nodes > 1 or graph.channels < 2:
        return 0.0
    if efficiency is None:
        return _bus(communicator, graph) * 5 / 6
    # One channel's worth is lost to synchronisation; an all_reduce has two operations in flight.
    per_channel = graph.intra_bytes_s / 1e9 * efficiency * (graph.channels - 1) / graph.channels * 2
    bus = graph.channels * min(per_channel, graph.inter_bytes_s / 1e9)
    return bus * communicator.ranks / _steps(Op.ALL_REDUCE, communicator.ranks)


def _pat(communicator: Communicator) -> float:
    """PAT runs with one rank a node only."""
    if communicator.nodes != communicator.ranks:
        return 0.0
    return _bus(communicator, communicator.graphs[Algo.TREE]) * communicator.constants.pat_share


def _latency_us(communicator: Communicator, op: Op, algo: Algo, proto: int) -> float:
    graph = communicator.graph(algo)
    assert graph is not None
    within = (NVLINK_US if graph.nvlink else PCI_US)[algo][proto]
    between = _network_us(communicator, graph, algo, proto)
    base, nodes, ranks = BASE_US[algo][proto], communicator.nodes, communicator.ranks
    if algo is Algo.RING:
        return base + _ring_us(communicator, op, graph, proto, within, between)
    if algo is Algo.TREE:
        return base + 2 * ((ranks // nodes - 1) * within + (nodes.bit_length() - 1) * between)
    if algo is Algo.PAT:
        return base + (nodes.bit_length() - 1) * between / 3.5 + ranks * 2.8 if _PROTOS[proto] is Proto.SIMPLE else 0.0
    return within


def _network_us(communicator: Communicator, graph: Graph, algo: Algo, proto: int) -> float:
    """With one rank a node a ring hides nothing, and has a tree's latency; Simple flushes, which costs the link once more."""
    exposed = communicator.ranks == communicator.nodes
    links = 2 if _PROTOS[proto] is Proto.SIMPLE else 1
    return NETWORK_US[Algo.TREE if exposed else algo][proto] + links * graph.link_latency_s * 1e6


def _ring_us(communicator: Communicator, op: Op, graph: Graph, proto: int, within: float, between: float) -> float:
    nodes, steps = communicator.nodes, _steps(op, communicator.ranks)
    if op in (Op.BROADCAST, Op.REDUCE):
        hop = within if nodes == 1 else NETWORK_US[Algo.RING][proto]
        if graph.same_channels:
            return hop
        if _PROTOS[proto] is Proto.SIMPLE:
            hop = ((NVLINK_US if graph.nvlink else PCI_US) if nodes == 1 else NETWORK_US)[Algo.TREE][proto]
        return steps * hop
    if nodes == 1:
        return steps * within
    overhead = (2.0 if communicator.cpu == "amd" else 1.0) * (3 if _PROTOS[proto] is Proto.SIMPLE else 1)
    crossing = (2 if op is Op.ALL_REDUCE else 1) * (nodes - 1)
    return (steps - crossing) * max(within, overhead) + crossing * between
