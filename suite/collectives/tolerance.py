"""How far a right sum over ranks can be from the exact one, in each format."""

import math

from suite.collectives.names import Op
from suite.collectives.number_format import number_format

_SUMMING = (Op.ALL_REDUCE, Op.REDUCE_SCATTER, Op.REDUCE)


def tolerance(op: Op, fmt: str, ranks: int) -> float:
    """Largest acceptable norm(out - ref) / norm(ref) of random data; 0 where nothing is added, or integers are.

    A rounding to the nearest moves a norm of random numbers by under half a unit roundoff u.  Ranks that are added one after
    the other round n - 1 partial sums, the k-th of which is sqrt(k/n) of the result: together (u/2) sqrt(n/2).  Three times
    that and one unit for the result are allowed.  A tree rounds less often, a library that adds in a wider format hardly at
    all.
    """
    if op not in _SUMMING:
        return 0.0
    roundoff = number_format(fmt).roundoff
    return roundoff * (1 + 1.5 * math.sqrt(ranks / 2)) if roundoff else 0.0


def lost_rank_error(ranks: int) -> float:
    """What leaving one rank out of a sum of random data does to its norm: 1/sqrt(n)."""
    return 1 / math.sqrt(ranks)


def random_data_shows_a_lost_rank(op: Op, fmt: str, ranks: int) -> bool:
    """Whether the tolerance is small enough to tell; where it is not, only the exact integers can."""
    return tolerance(op, fmt, ranks) < 0.9 * lost_rank_error(ranks)
