"""How many tokens each sequence of a batch has."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from suite.errors import UsageError, nearest

if TYPE_CHECKING:  # sequences of one length are planned without it
    import numpy as np

EQUAL = "equal"
LOWEST, HIGHEST = 0.25, 1.75  # of the mean, for uniform lengths
SIGMA = 0.8  # of the logarithm, for skewed ones: the longest of 32 is then about five times the median


def _uniform(batch: int, random: "np.random.Generator") -> Sequence[float]:
    return [float(each) for each in random.uniform(LOWEST, HIGHEST, batch)]


def _skewed(batch: int, random: "np.random.Generator") -> Sequence[float]:
    return [float(each) for each in random.lognormal(0.0, SIGMA, batch)]


DRAWN: "Mapping[str, Callable[[int, np.random.Generator], Sequence[float]]]" = {"uniform": _uniform, "skewed": _skewed}
# ``equal``; ``uniform`` between a quarter and seven quarters of the mean; ``skewed`` as prompts of a chat are, log-normal.
DISTRIBUTIONS = (EQUAL, *DRAWN)


def lengths(batch: int, mean: int, distribution: str = EQUAL, seed: int = 0) -> tuple[int, ...]:
    """Tokens of each of ``batch`` sequences, at least 1 each and ``batch * mean`` together whatever the distribution.

    Raises ``UsageError`` for a distribution that is not in ``DISTRIBUTIONS``, and sizes below 1.
    """
    if distribution not in DISTRIBUTIONS:
        raise UsageError(f"unknown distribution of lengths '{distribution}'{nearest(distribution, DISTRIBUTIONS)}")
    if batch < 1 or mean < 1:
        raise UsageError(f"batch={batch} with a mean length of {mean}; both go from 1 on")
    if distribution == EQUAL:
        return (mean,) * batch
    import numpy as np

    return _whole(DRAWN[distribution](batch, np.random.default_rng(seed)), batch * (mean - 1))


def _whole(weights: Sequence[float], total: int) -> tuple[int, ...]:
    """1 and its share of ``total`` for each weight: rounded down, and what is left to the largest remainders."""
    unit = total / math.fsum(weights)
    shares = [each * unit for each in weights]
    found = [math.floor(each) for each in shares]
    order = sorted(range(len(shares)), key=lambda place: (found[place] - shares[place], place))
    for place in order[: total - sum(found)]:
        found[place] += 1
    return tuple(each + 1 for each in found)
