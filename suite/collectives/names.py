"""The names of operations, algorithms and protocols, and what the libraries and their tests call them."""

from enum import StrEnum


class Op(StrEnum):
    """A collective operation."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    GATHER = "gather"
    SCATTER = "scatter"
    SEND_RECV = "send_recv"


class Algo(StrEnum):
    """Who moves what where, in the order in which NCCL numbers them in logs before 2.24."""

    TREE = "tree"
    RING = "ring"
    COLLNET_DIRECT = "collnet_direct"
    COLLNET_CHAIN = "collnet_chain"
    NVLS = "nvls"
    NVLS_TREE = "nvls_tree"
    PAT = "pat"


class Proto(StrEnum):
    """How data and flags share a message, in the order in which NCCL numbers them."""

    LL = "ll"
    LL128 = "ll128"
    SIMPLE = "simple"


# As NCCL writes them in its tables; in NCCL_ALGO, NCCL_PROTO and the log they stand in any case.
NCCL_OPS = {
    Op.BROADCAST: "Broadcast",
    Op.REDUCE: "Reduce",
    Op.ALL_GATHER: "AllGather",
    Op.REDUCE_SCATTER: "ReduceScatter",
    Op.ALL_REDUCE: "AllReduce",
}
NCCL_ALGOS = {
    Algo.TREE: "Tree",
    Algo.RING: "Ring",
    Algo.COLLNET_DIRECT: "CollNetDirect",
    Algo.COLLNET_CHAIN: "CollNetChain",
    Algo.NVLS: "NVLS",
    Algo.NVLS_TREE: "NVLSTree",
    Algo.PAT: "PAT",
}
NCCL_PROTOS = {Proto.LL: "LL", Proto.LL128: "LL128", Proto.SIMPLE: "Simple"}

_OPS = {op.value.replace("_", ""): op for op in Op}
_ALGOS = {name.lower(): algo for algo, name in NCCL_ALGOS.items()}
_PROTOS = {name.lower(): proto for proto, name in NCCL_PROTOS.items()}


def op_of(name: str) -> Op | None:
    """The operation that a program or a log calls ``all_reduce_perf``, ``AllReduce``, ``alltoall`` or ``SendRecv``."""
    return _OPS.get(_plain(name.removesuffix("_perf")))


def algo_of(name: str) -> Algo | None:
    """``RING``, ``NVLS_TREE`` and ``NVLSTree`` as an algorithm; ``None`` for a name that NCCL does not have."""
    return _ALGOS.get(_plain(name))


def proto_of(name: str) -> Proto | None:
    """``SIMPLE`` or ``LL128`` as a protocol; ``None`` for a name that NCCL does not have."""
    return _PROTOS.get(_plain(name))


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "").replace("-", "")
