"""How many tokens each sequence of a batch has."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from suite.errors import UsageError, nearest

LOWEST, HIGHEST = 0.25, 1.75  # of the mean, for uniform lengths
SIGMA = 0.8  # of the logarithm, for skewed ones: the longest of 32 is then about five times the median


def _equal(batch: int, random: np.random.Generator) -> np.ndarray:
    return np.ones(batch)


def _uniform(batch: int, random: np.random.Generator) -> np.ndarray:
    return random.uniform(LOWEST, HIGHEST, batch)


def _skewed(batch: int, random: np.random.Generator) -> np.ndarray:
    return random.lognormal(0.0, SIGMA, batch)


# ``equal``; ``uniform`` between a quarter and seven quarters of the mean; ``skewed`` as prompts of a chat are, log-normal.
DISTRIBUTIONS: Mapping[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "equal": _equal,
    "uniform": _uniform,
    "skewed": _skewed,
}


def lengths(batch: int, mean: int, distribution: str = "equal", seed: int = 0) -> tuple[int, ...]:
    """Tokens of each of ``batch`` sequences, at least 1 each and ``batch * mean`` together whatever the distribution.

    Raises ``UsageError`` for a distribution that is not in ``DISTRIBUTIONS``, and sizes below 1.
    """
    if distribution not in DISTRIBUTIONS:
        raise UsageError(f"unknown distribution of lengths '{distribution}'{nearest(distribution, DISTRIBUTIONS)}")
    if batch < 1 or mean < 1:
        raise UsageError(f"batch={batch} with a mean length of {mean}; both go from 1 on")
    drawn = DISTRIBUTIONS[distribution](batch, np.random.default_rng(seed))
    return _whole(drawn, batch * (mean - 1))


def _whole(weights: Sequence[float] | np.ndarray, total: int) -> tuple[int, ...]:
    """1 and its share of ``total`` for each weight: rounded down, and what is left to the largest remainders."""
    shares = [float(each) for each in np.asarray(weights) * (total / float(np.sum(weights)))]
    found = [math.floor(each) for each in shares]
    order = sorted(range(len(shares)), key=lambda place: (found[place] - shares[place], place))
    for place in order[: total - sum(found)]:
        found[place] += 1
    return tuple(each + 1 for each in found)
