"""The fastest of several configurations, by their times in alternation; never a part of what is timed for a result.

Nothing of it outlives the case: there is no file of choices, and the next case tries again.
"""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from statistics import median
from typing import Generic, NamedTuple, Protocol, TypeVar

Config = TypeVar("Config", bound=Hashable)

ROUNDS = 3  # every configuration that is still in is timed this often before half of them go


class Refused(Exception):
    """A configuration does not compile, does not fit, or computes something else; the message says which."""


class Candidate(Protocol):
    """A configuration ready to be timed."""

    def time_s(self) -> float:
        """Time it once: seconds of one launch."""
        ...


class Found(NamedTuple, Generic[Config]):
    """``times_s`` has every configuration that ran, by its latest times; ``untried`` had no time left."""

    best: Config
    seconds: float
    times_s: Mapping[Config, float]
    refused: Mapping[Config, str]
    untried: int


def search(
    configs: Sequence[Config],
    make: Callable[[Config], Candidate],
    budget_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> Found[Config]:
    """Time every configuration once, then halve: the better half is timed again, in turns, until the best two have been.

    The first is the default and must work: what it raises is raised.  ``budget_s`` ends the first pass only.
    """
    began_s = clock()
    ready: dict[Config, Candidate] = {}
    refused: dict[Config, str] = {}
    tried = 0
    for config in configs:
        if ready and clock() - began_s > budget_s:
            break
        tried += 1
        try:
            ready[config] = make(config)
        except Refused as reason:
            if config == configs[0]:
                raise
            refused[config] = str(reason)
    times_s = {config: candidate.time_s() for config, candidate in ready.items()}
    best = _halved(ready, times_s, configs[0])
    return Found(best, clock() - began_s, times_s, refused, len(configs) - tried)


def _halved(ready: Mapping[Config, Candidate], times_s: dict[Config, float], default: Config) -> Config:
    """The one left; updates the times of those timed again, and of the default, which all of them are compared with."""
    left = sorted(ready, key=lambda config: times_s[config])
    while len(left) > 1:
        left = left[: max(2, len(left) // 2)]
        turns = list(dict.fromkeys([*left, default]))
        rounds = [[ready[config].time_s() for config in turns] for _ in range(ROUNDS)]
        times_s.update({config: median(each) for config, each in zip(turns, zip(*rounds, strict=True), strict=True)})
        left.sort(key=lambda config: times_s[config])
        if len(left) == 2:
            break
    return left[0]
