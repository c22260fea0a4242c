"""How many launches make one sample, and which input set each of them uses."""

from collections.abc import Callable, Collection
from math import gcd
from typing import NamedTuple, Protocol, runtime_checkable

# A trial this share of a sample long is enough to size the sample by.
_TRIAL_SHARE = 0.1
_GROWTH_AT_MOST = 16
_BEYOND_DOUBT = 10  # samples: what takes so long was not held up, and would cost as much again


class Launchable(Protocol):
    """What a sampler needs of a kernel: the part of ``suite.backend.Kernel`` that launches."""

    sets: int

    def enqueue(self, set_index: int) -> None: ...


@runtime_checkable
class HandingOver(Protocol):
    """A kernel whose launches may leave results in buffers of a library's own, where no check looks for them."""

    hands_over: bool

    def hand_over(self, sets: Collection[int]) -> None:
        """Copy what the latest launches of these sets returned into their outputs: work that is not to be timed."""
        ...


def hands_over(kernel: object) -> bool:
    """Whether a kernel's results have to be handed over after its launches."""
    return isinstance(kernel, HandingOver) and kernel.hands_over


class LaunchPlan(NamedTuple):
    """``launches`` a sample; sample number i starts at input set i * launches modulo ``sets``.

    ``period`` samples use every set equally often and then repeat.  In one that ``stays`` all launches of a sample use one set:
    each finds what the one before it left in the cache, and the next sample uses another.
    """

    launches: int
    sets: int
    period: int
    stays: bool = False

    def order(self, sample: int) -> list[int]:
        """Input sets of one sample's launches, in order."""
        if self.stays:
            return [sample % self.sets] * self.launches
        first = sample * self.launches
        return [(first + step) % self.sets for step in range(self.launches)]


def plan_launches(launch_s: float, sample_s: float, sets: int, limit: int) -> LaunchPlan:
    """Choose the launches of a sample that should last about ``sample_s``.

    A launch as long as a sample is a sample of its own, and the sets take turns from sample to sample.  Shorter ones are
    grouped in whole rotations, so that every sample uses every set equally, or where one rotation is too long in parts of one;
    ``limit`` bounds their number, one rotation excepted.
    """
    if launch_s >= sample_s:
        return LaunchPlan(1, sets, sets)
    wanted = round(sample_s / max(launch_s, 1e-9))
    if part := _part_of_rotation(wanted, sets, limit):
        return LaunchPlan(part, sets, sets // gcd(part, sets))
    rotations = max(1, min(round(wanted / sets), limit // sets))
    return LaunchPlan(rotations * sets, sets, 1)


def _part_of_rotation(wanted: int, sets: int, limit: int) -> int | None:
    """Launches of a sample that is a part of a rotation; ``None`` where whole rotations do.

    A part that divides the rotation needs the fewest graphs: one is taken that is off by up to a half.  Without one the parts
    overlap, unless that would take more than ``limit`` launches until they repeat.
    """
    if sets <= wanted:
        return None
    near = [part for part in range(max(1, wanted // 2), 2 * wanted + 1) if sets % part == 0]
    if near:
        return min(near, key=lambda part: max(part / wanted, wanted / part))
    return wanted if wanted * sets <= limit else None


def plan_stays(launch_s: float, sample_s: float, sets: int, limit: int) -> LaunchPlan:
    """Choose the launches of a sample that should last about ``sample_s`` and uses one set; ``limit`` bounds their number."""
    launches = max(1, min(round(sample_s / max(launch_s, 1e-9)), limit))
    return LaunchPlan(launches, sets, sets, stays=True)


def estimate_launch_s(time_launches: Callable[[int], float], sets: int, sample_s: float, limit: int) -> float:
    """Seconds of one launch, from trials of more and more launches until one is long enough to be trusted.

    ``time_launches(n)`` returns the seconds that n launches take together, overhead included.  A trial that seems long enough
    is repeated: what held up the only launch of one would leave samples of few launches, and gaps between them.
    """
    count = sets
    while True:
        total_s = time_launches(count)
        if _TRIAL_SHARE * sample_s <= total_s < _BEYOND_DOUBT * sample_s:
            total_s = min(total_s, time_launches(count))
        if total_s >= _TRIAL_SHARE * sample_s or count >= limit:
            return total_s / count
        wanted = _TRIAL_SHARE * sample_s / max(total_s, 1e-9)
        count = min(limit, count * max(2, min(_GROWTH_AT_MOST, round(wanted))))
