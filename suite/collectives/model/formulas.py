"""What alpha and 1/B are multiplied with: the steps that wait for each other, and the bytes that cross a rank's link.

    all_reduce      ring   2(n-1) (alpha + S/(n B))
                    tree   2 log2(n) alpha + 2 S/B       pipelined: both trees together fill a link twice; of 2 ranks S/B
                                                         and of 3 ranks 1.5 S/B, as none has edges enough
    all_gather, reduce_scatter
                    ring   (n-1) (alpha + S/(n B))
    all_to_all             (n-1) (alpha + S/(n B))       every rank sends a share to each of the others
    broadcast       ring   (n-1) alpha + S/B             pipelined
    send_recv              alpha + S/B

S is the message, n the ranks (Thakur, Rabenseifner, Gropp 2005; Sanders, Speck, Träff 2009 for two trees).
"""

import math
from typing import NamedTuple

from suite.collectives.names import Algo, Op
from suite.errors import UsageError

_SHARED = (Op.ALL_GATHER, Op.REDUCE_SCATTER, Op.ALL_TO_ALL)
_RING = {
    Op.ALL_REDUCE: "2(n-1) alpha + 2(n-1)/n S/B",
    **dict.fromkeys(_SHARED, "(n-1) alpha + (n-1)/n S/B"),
    Op.BROADCAST: "(n-1) alpha + S/B",
    Op.SEND_RECV: "alpha + S/B",
}
_TREE = {Op.ALL_REDUCE: "2 log2(n) alpha + 2 S/B"}


class Terms(NamedTuple):
    """``steps`` of alpha and ``volume`` bytes over B."""

    steps: float
    volume: float


def formula(op: Op, algo: Algo) -> str | None:
    """The formula as it is shown beside a fit; ``None`` where there is none."""
    return {Algo.RING: _RING, Algo.TREE: _TREE}.get(algo, {}).get(op)


def terms(op: Op, algo: Algo, ranks: int, message_bytes: int) -> Terms:
    """Raises ``UsageError`` for an algorithm without a formula, and for a world below two ranks."""
    if ranks < 2:
        article = "an" if op.value.startswith("a") else "a"
        raise UsageError(f"{article} {op} over {ranks} rank has no model: nothing is sent; take at least 2 ranks")
    if formula(op, algo) is None:
        have = " and ".join(each for each in (Algo.RING, Algo.TREE) if formula(op, each)) or "none"
        raise UsageError(f"there is no alpha-beta formula for {algo} of {op}; there is one for {have}")
    if algo is Algo.TREE:
        return Terms(2 * math.log2(ranks), min(2.0, ranks / 2) * message_bytes)
    if op is Op.ALL_REDUCE:
        return Terms(2.0 * (ranks - 1), 2.0 * (ranks - 1) * message_bytes / ranks)
    if op in _SHARED:
        return Terms(float(ranks - 1), (ranks - 1) * message_bytes / ranks)
    return Terms(1.0 if op is Op.SEND_RECV else float(ranks - 1), float(message_bytes))
