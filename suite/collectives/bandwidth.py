"""Algorithm and bus bandwidth of a collective, and what really crosses a link.

    algbw = S / t          S: message bytes, the larger of what a rank sends and receives
    busbw = algbw x factor all_reduce 2(n-1)/n; all_gather, reduce_scatter, all_to_all, gather, scatter (n-1)/n; others 1

The factor is what a ring moves per rank, so that busbw compares with the unidirectional rate of a link and does not depend on
the algorithm that ran (NCCL tests, ``doc/PERFORMANCE.md``).  Where a switch reduces (NVLS) less crosses the link than the
factor says, and busbw exceeds the link: it is then ``ring-equivalent``, and the wire estimate stands beside it.
"""

from suite.collectives.names import Algo, Op
from suite.errors import UsageError

RING_EQUIVALENT = "ring-equivalent"
_SHARED = (Op.ALL_GATHER, Op.REDUCE_SCATTER, Op.ALL_TO_ALL, Op.GATHER, Op.SCATTER)
_IN_SWITCH = (Algo.NVLS, Algo.NVLS_TREE)


def busbw_factor(op: Op, ranks: int) -> float:
    """What algbw is multiplied with.

    Raises ``UsageError`` below two ranks: the factor is 0, and the time is that of a local copy or of nothing.
    """
    if ranks < 2:
        raise UsageError(f"{op} over {ranks} rank has no bus bandwidth: nothing crosses a link; take at least 2 ranks")
    if op is Op.ALL_REDUCE:
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if op in _SHARED else 1.0


def algbw_bytes_s(message_bytes: int, time_s: float) -> float:
    """Message bytes over time, bytes per second."""
    return message_bytes / time_s


def busbw_bytes_s(op: Op, ranks: int, message_bytes: int, time_s: float) -> float:
    """Bus bandwidth, bytes per second; raises ``UsageError`` below two ranks."""
    return algbw_bytes_s(message_bytes, time_s) * busbw_factor(op, ranks)


def busbw_formula(op: Op) -> str:
    """The formula as it is shown beside a number."""
    factor = {Op.ALL_REDUCE: " x 2(n-1)/n", **dict.fromkeys(_SHARED, " x (n-1)/n")}.get(op, "")
    return f"S/t{factor}"


def wire_factor(op: Op, algo: Algo | None, ranks: int) -> float:
    """Bytes in the busier direction of one rank's link, as a multiple of the message: an estimate, from the definition.

    With NVLS a rank of an all_reduce sends its S bytes once to be reduced in the switch, and once its share S/n of the result
    to be multicast: (n+1)/n.  Otherwise it is busbw's factor.
    """
    factor = busbw_factor(op, ranks)
    if algo in _IN_SWITCH and op is Op.ALL_REDUCE:
        return (ranks + 1) / ranks
    return factor


def busbw_label(algo: Algo | None) -> str | None:
    """``ring-equivalent`` where busbw may exceed the link, else nothing."""
    return RING_EQUIVALENT if algo in _IN_SWITCH else None
