"""How often a sum in place can go on with its own result before the numbers leave the format."""

from suite.collectives.data import largest_drawn
from suite.collectives.message import Message
from suite.collectives.names import Op
from suite.collectives.number_format import number_format

_SUMS = (Op.ALL_REDUCE, Op.REDUCE_SCATTER, Op.REDUCE)


def launches_in_range(given: Message, in_place: bool) -> int | None:
    """Launches in a row after which random data are still numbers of the format, at least 1; ``None`` where nothing grows.

    A launch multiplies the largest number by the ranks at most.  Beyond, floats are infinite and integers have wrapped to 0 in
    the end: neither is what the case says was timed.
    """
    if not in_place or given.op not in _SUMS:
        return None
    limit, bound, launches = number_format(given.format).largest, largest_drawn(given) * given.ranks, 0
    while bound < limit:
        launches, bound = launches + 1, bound * given.ranks
    return max(1, launches)
