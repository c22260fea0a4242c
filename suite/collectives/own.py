"""roofbench's own algorithms as one rank carries them out, and what they must have moved when they are done."""

from collections.abc import Iterator

from suite.collectives import ring, tree_schedule
from suite.collectives.choice import OWN_ALGOS
from suite.collectives.names import Algo, Op
from suite.collectives.schedule import Step, Traffic
from suite.errors import UsageError

CHUNK_BYTES = 2**18  # long enough that bandwidth and not latency decides what a chunk costs
LARGEST_CHUNKS = 64


def steps(op: Op, algo: Algo, ranks: int, rank: int, elements: int, itemsize: int) -> Iterator[Step]:
    """The steps of ``rank``; raises ``UsageError`` where roofbench has no such algorithm of its own."""
    if algo not in OWN_ALGOS.get(op, ()):
        known = ", ".join(f"{each} by {' or '.join(algos)}" for each, algos in OWN_ALGOS.items())
        raise UsageError(f"roofbench has no {algo} of its own for {op}; it has {known}")
    if algo is Algo.TREE:
        return tree_schedule.all_reduce(ranks, rank, elements, chunks_of(elements, itemsize))
    return {Op.ALL_REDUCE: ring.all_reduce, Op.ALL_GATHER: ring.all_gather, Op.REDUCE_SCATTER: ring.reduce_scatter}[op](
        ranks, rank, elements
    )


def chunks_of(elements: int, itemsize: int) -> int:
    """How many chunks a tree's half of ``elements`` is cut into."""
    return max(1, min(LARGEST_CHUNKS, elements // 2 * itemsize // CHUNK_BYTES))


def expected_all_reduce(algo: Algo, ranks: int, rank: int, elements: int, itemsize: int) -> Traffic:
    """What ``rank`` must have moved in an all_reduce, counted from the formula and not from the steps."""
    if algo is Algo.TREE:
        return tree_schedule.all_reduce_traffic(ranks, rank, elements, chunks_of(elements, itemsize))
    return ring.all_reduce_traffic(ranks, rank, elements)


def step_count(algo: Algo, ranks: int, elements: int, itemsize: int) -> int:
    """Steps of an all_reduce from the first send to the last receive."""
    if algo is Algo.TREE:
        return tree_schedule.all_reduce_steps(ranks, chunks_of(elements, itemsize))
    return ring.all_reduce_steps(ranks)
