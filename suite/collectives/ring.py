"""Ring algorithms: every rank sends to the next and receives from the one before, n - 1 steps a phase.

reduce_scatter  part p travels once around and is added to on the way; rank p is left with its sum
all_gather      every rank's part travels once around
all_reduce      one after the other: 2(n-1) steps, 2(n-1)/n of the message per rank
"""

from collections.abc import Iterator

from suite.collectives.part import Part, parts
from suite.collectives.schedule import Receive, Send, Step, Traffic


def reduce_scatter(ranks: int, rank: int, elements: int) -> Iterator[Step]:
    """Steps after which ``rank`` holds the sum of its own of the ``parts(elements, ranks)``; the others hold partial sums."""
    pieces = parts(elements, ranks)
    for number in range(ranks - 1):
        # Part p starts at rank p + 1 and ends at rank p, n - 1 steps later.
        yield _step(number, ranks, rank, pieces[(rank - number - 1) % ranks], pieces[(rank - number - 2) % ranks], add=True)


def all_gather(ranks: int, rank: int, elements: int, first_step: int = 0) -> Iterator[Step]:
    """Steps after which ``rank`` holds every part of ``parts(elements, ranks)``, having started with part ``rank``."""
    pieces = parts(elements, ranks)
    for number in range(ranks - 1):
        sent, received = pieces[(rank - number) % ranks], pieces[(rank - number - 1) % ranks]
        yield _step(first_step + number, ranks, rank, sent, received, add=False)


def all_reduce(ranks: int, rank: int, elements: int) -> Iterator[Step]:
    """Steps after which ``rank`` holds the sum of everybody's ``elements``: 2(n-1) of them."""
    yield from reduce_scatter(ranks, rank, elements)
    yield from all_gather(ranks, rank, elements, first_step=ranks - 1)


def all_reduce_steps(ranks: int) -> int:
    """Steps of an all_reduce, whatever its size."""
    return 2 * (ranks - 1)


def all_reduce_traffic(ranks: int, rank: int, elements: int) -> Traffic:
    """What ``rank`` moves in an all_reduce, by the formula: all but one part in each phase, 2(n-1)/n of the elements."""
    if ranks == 1:
        return Traffic(0, 0, 0)
    pieces = parts(elements, ranks)
    kept = [pieces[(rank + offset) % ranks].elements for offset in (-1, 0, 1)]
    return Traffic(2 * elements - kept[1] - kept[2], 2 * elements - kept[0] - kept[1], all_reduce_steps(ranks))


def _step(number: int, ranks: int, rank: int, sent: Part, received: Part, *, add: bool) -> Step:
    return Step(number, (Send((rank + 1) % ranks, sent),), (Receive((rank - 1) % ranks, received, add),))
