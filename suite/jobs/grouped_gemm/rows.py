"""How many rows each group has.

``uniform``: as equal as whole numbers are.  ``balanced`` and ``skewed`` are what a router gives: each token takes ``top_k``
different groups, drawn without replacement by the groups' popularity; all of them equal, or log-normal (sigma 1: the busiest of
256 experts is then taken about ten times as often as they are in the mean).  A group may be taken by nobody.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # groups of equal size are planned without it
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

UNIFORM = "uniform"
SIGMA = 1.0  # of the logarithm of a skewed popularity
SEED = 0  # what a router chose is part of what is computed, and the same wherever it is measured
DRAWN_AT_ONCE = 1 << 20  # numbers: 8 MiB


class Drawn:
    """Random numbers from the bits of a generator, whose stream NumPy keeps from version to version (NEP 19)."""

    def __init__(self, seed: int) -> None:
        from numpy.random import PCG64

        self._bits = PCG64(seed)

    def uniform(self, *shape: int) -> "Numbers":
        """From 0 on, below 1, in steps of 2**-53."""
        import numpy as np

        steps = (self._bits.random_raw(math.prod(shape)) >> 11).reshape(shape)
        found: Numbers = steps.astype(np.float64) * 2.0**-53
        return found

    def exponential(self, *shape: int) -> "Numbers":
        import numpy as np

        found: Numbers = -np.log1p(-self.uniform(*shape))
        return found

    def normal(self, count: int) -> "Numbers":
        """By Box's and Muller's transform."""
        import numpy as np

        found: Numbers = np.sqrt(2 * self.exponential(count)) * np.cos(math.tau * self.uniform(count))
        return found


def _equal(groups: int, drawn: Drawn) -> Any:
    import numpy as np

    return np.ones(groups)


def _skewed(groups: int, drawn: Drawn) -> Any:
    import numpy as np

    return np.exp(SIGMA * drawn.normal(groups))


ROUTED: Mapping[str, Callable[[int, Drawn], Any]] = {"balanced": _equal, "skewed": _skewed}
SPREADS = (UNIFORM, *ROUTED)


@lru_cache(maxsize=1024)
def rows_of(groups: int, rows: int, spread: str, top_k: int = 1) -> tuple[int, ...]:
    """Rows of each group, ``rows`` together; with ``top_k`` above 1 none has more than ``rows / top_k``.

    ``spread`` is one of ``SPREADS``; ``top_k`` divides ``rows`` and is no more than ``groups``.
    """
    assert rows % top_k == 0, f"{rows} rows are no whole number of tokens for {top_k} groups each"
    assert 1 <= top_k <= groups, f"{top_k} of {groups} groups"
    if spread == UNIFORM:
        each, more = divmod(rows, groups)
        return tuple(each + (place < more) for place in range(groups))
    drawn = Drawn(SEED)
    return _taken(rows // top_k, top_k, ROUTED[spread](groups, drawn), drawn)


def _taken(tokens: int, top_k: int, popularity: Any, drawn: Drawn) -> tuple[int, ...]:
    """How often each group is taken."""
    import numpy as np

    groups = len(popularity)
    counts = np.zeros(groups, dtype=np.int64)
    step = max(1, DRAWN_AT_ONCE // (groups if top_k > 1 else 1))
    for first in range(0, tokens, step):
        chosen = _choices(min(step, tokens - first), top_k, popularity, drawn)
        counts += np.bincount(chosen, minlength=groups)
    return tuple(int(count) for count in counts)


def _choices(tokens: int, top_k: int, popularity: Any, drawn: Drawn) -> Any:
    """The groups that some tokens take, in one line.

    The first ``top_k`` to arrive are a draw without replacement, where times of arrival are exponential with these rates; of a
    single one it is known which without waiting for all.
    """
    import numpy as np

    if top_k == 1:
        shares = np.cumsum(popularity / popularity.sum())
        return np.minimum(np.searchsorted(shares, drawn.uniform(tokens), side="right"), len(shares) - 1)
    arrivals = drawn.exponential(tokens, len(popularity)) / popularity
    return np.argpartition(arrivals, top_k - 1, axis=1)[:, :top_k].ravel()
