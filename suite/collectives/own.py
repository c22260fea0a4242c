"""roofbench's own algorithms as one rank carries them out, and what they must have moved when they are done."""

from collections.abc import Iterable, Iterator

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


def expected(op: Op, algo: Algo, ranks: int, rank: int, elements: int, itemsize: int) -> Traffic:
    """What ``rank`` must have moved of a message of ``elements``, by the formula and not counted from the steps.

    For an all_reduce see the algorithms; an all_gather and a reduce_scatter by a ring move all but one of the ranks' shares.
    """
    if op is not Op.ALL_REDUCE:
        moved = elements // ranks * (ranks - 1)
        return Traffic(moved, moved, ranks - 1)
    if algo is Algo.TREE:
        return tree_schedule.all_reduce_traffic(ranks, rank, elements, chunks_of(elements, itemsize))
    return ring.all_reduce_traffic(ranks, rank, elements)


def step_count(op: Op, algo: Algo, ranks: int, elements: int, itemsize: int) -> int:
    """Steps from the first send to the last receive."""
    if op is not Op.ALL_REDUCE:
        return ranks - 1
    if algo is Algo.TREE:
        return tree_schedule.all_reduce_steps(ranks, chunks_of(elements, itemsize))
    return ring.all_reduce_steps(ranks)


def staged_elements(steps: Iterable[Step]) -> int:
    """The most elements that one of a rank's steps receives to add: what must be kept apart from the data until then."""
    return max((sum(each.part.elements for each in step.receives if each.add) for step in steps), default=0)


def most_staged_elements(op: Op, algo: Algo, ranks: int, elements: int, itemsize: int) -> int:
    """No rank stages more: a ring one part, a tree a chunk from each of two children."""
    if op not in (Op.ALL_REDUCE, Op.REDUCE_SCATTER):
        return 0
    if algo is Algo.TREE:
        half = -(-elements // 2)
        return 2 * -(-half // chunks_of(elements, itemsize))
    return -(-elements // ranks)
