"""How the keys of decode's data are made so that a check sees what a kernel reads, whichever library draws them."""

import math

from suite.jobs.decode import Sizes

# Where no token is there are numbers that a result shows wherever a kernel reads them: with scores of many standard deviations.
LOUD = 8.0
# Mean square of the data, where a key that is partly a query is told by it; 0 where every key is a query already.
MEAN_SQUARES = {"normal": 1.0, "uniform": 1 / 3, "integer": 2 / 3, "outliers": 1.0, "zeros": 0.0, "constant": 0.0}


def meeting_columns(sizes: Sizes, distribution: str) -> int:
    """How many numbers a latest key has of a query.

    Where scores are standard normal, the squares of n weights sum to e / n; that of one key with a score of 1 + ln(n) / 2 is as
    much.
    """
    wanted = 1.0 + 0.5 * math.log(sizes.kv_len)
    of_each = MEAN_SQUARES[distribution] / math.sqrt(sizes.head_dim)
    return min(sizes.head_dim, math.ceil(wanted / of_each)) if of_each else 0
