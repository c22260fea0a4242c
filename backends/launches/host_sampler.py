"""Timing by the host's clock: a CPU in any regime, and on any device what a caller waits for one launch."""

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from backends.launches.flush import CacheFlush
from backends.launches.plan import Launchable, LaunchPlan

# A trial shorter than this may have been interrupted by another process for longer than it ran itself.
LONG_TRIAL_S = 0.05


def clock_resolution_s() -> float:
    """The smallest step seen between successive readings of the host's clock: what it resolves, its own cost included."""
    readings = [time.perf_counter_ns() for _ in range(2000)]
    steps = [after - before for before, after in pairwise(readings) if after > before]
    return min(steps) / 1e9


class HostSampler:
    """Times ``plan.launches`` launches a sample between two readings of the host's clock.

    ``wait`` returns when everything launched has finished (nothing to do on a CPU).  With a ``flush``, caches are emptied
    before each rotation over the input sets, outside the timed part; every launch of a rotation then finds its own buffers
    cold.  Calls of ``sample`` go on in the rotation where the last one ended; the first, also after a replay, begins with a
    flush.
    """

    method = "host"

    def __init__(
        self,
        kernel: Launchable,
        plan: LaunchPlan,
        wait: Callable[[], None],
        flush: CacheFlush | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self._kernel = kernel
        self._wait = wait
        self._flush = flush
        self._next = 0
        self._orders = [plan.order(sample) for sample in range(plan.period)]
        self.launches = plan.launches
        self.resolution_s = clock_resolution_s()
        self.details: Mapping[str, Any] = {
            "sets": plan.sets,
            "flush_bytes": flush.size_bytes if flush is not None else 0,
            "samples_per_flush": plan.period if flush is not None else 0,
            **(details or {}),
        }
        self.replay()

    def sample(self, count: int) -> Sequence[int]:
        self._wait()  # what was enqueued before, a reading of the clock for instance, is not the first sample's
        durations_ns = []
        for _ in range(count):
            durations_ns.append(self._time(self._next % len(self._orders)))
            self._next += 1
        return durations_ns

    def replay(self) -> None:
        for set_index in range(self._kernel.sets):
            self._kernel.enqueue(set_index)
        self._wait()
        self._next = 0

    def close(self) -> None:
        self._flush = None

    def _time(self, number: int) -> int:
        if self._flush is not None and number == 0:
            self._flush()
            self._wait()
        enqueue, wait, order = self._kernel.enqueue, self._wait, self._orders[number]
        began_ns = time.perf_counter_ns()
        for set_index in order:
            enqueue(set_index)
        wait()
        return time.perf_counter_ns() - began_ns


def time_by_host(kernel: Launchable, wait: Callable[[], None], sets: int) -> Callable[[int], float]:
    """A function that times n launches over the first ``sets`` input sets, for estimates: the best of three, if short."""

    def once(count: int) -> float:
        began_s = time.perf_counter()
        for launch in range(count):
            kernel.enqueue(launch % sets)
        wait()
        return time.perf_counter() - began_s

    def time_launches(count: int) -> float:
        first_s = once(count)
        return first_s if first_s > LONG_TRIAL_S else min(first_s, once(count), once(count))

    return time_launches
