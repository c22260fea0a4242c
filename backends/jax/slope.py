"""Timing by the slope: what N more turns add, so that starting and ending a program is in no sample.

Two ways to take turns: inside one program (``loop``), or as calls that queue up behind each other (``queue``) where the
compiler will not have the loop.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from backends.jax.kernel import XlaKernel
from backends.jax.program import Loop

TURNS_AT_LEAST = 2  # a loop of one turn is inlined, and nothing can be said of what became of it
TURNS_AT_MOST = 1 << 16
# Starting a program and hearing of its end takes tens of microseconds and varies by as much: a sample must outweigh it.
STEADY_SHARE = 10
PAIRS_AT_MOST = 3


class Turns(Protocol):
    """A way to run whole turns over every input set."""

    method: str

    def ready(self, turns: int) -> None:
        """Compile what ``run`` needs for this number."""
        ...

    def run(self, turns: int) -> None:
        """Run them and wait for their end."""
        ...

    def details(self) -> Mapping[str, Any]: ...


class LoopTurns:
    """Turns inside one program; ``NotALoop`` comes from ``ready`` where the compiler does not keep them there."""

    method = "loop"

    def __init__(self, kernel: XlaKernel) -> None:
        self._kernel = kernel
        self._loops: dict[int, Loop] = {}

    def ready(self, turns: int) -> None:
        if turns not in self._loops:
            self._loops[turns] = self._kernel.loop(turns)

    def run(self, turns: int) -> None:
        self._kernel.run(self._loops[turns])

    def details(self) -> Mapping[str, Any]:
        loops = self._loops.values()
        return {
            "loop_compile_s": sum(loop.program.compile_s for loop in loops),
            "tie": "/".join(sorted({loop.tie for loop in loops})),
            "products_in_a_turn": max(loop.audit.products for loop in loops),
        }


class QueueTurns:
    """Turns as calls, each behind the one before it; ``why`` is why they are not inside a program."""

    method = "queue"

    def __init__(self, kernel: XlaKernel, why: str) -> None:
        self._kernel = kernel
        self._why = why

    def ready(self, turns: int) -> None:
        """Single launches are compiled already."""

    def run(self, turns: int) -> None:
        for _ in range(turns):
            for set_index in range(self._kernel.sets):
                self._kernel.enqueue(set_index)
        self._kernel.wait()

    def details(self) -> Mapping[str, Any]:
        return {"why_queue": self._why}


class SlopeSampler:
    """A sample is the time of 2N turns less the time of N: N turns over every set, about ``sample_s`` seconds of work.

    A pair whose longer run took no longer was disturbed by something slower than the work; it is taken again, at most twice,
    and counted in ``details``.
    """

    def __init__(self, turns: Turns, sets: int, sample_s: float, resolution_s: float) -> None:
        self._turns = turns
        self._count = self._sized(sample_s)
        for count in (self._count, 2 * self._count):
            turns.ready(count)
            turns.run(count)
        self.method = turns.method
        self.launches = self._count * sets
        self.resolution_s = 2 * resolution_s
        self._said: dict[str, Any] = {"sets": sets, **turns.details(), "turns": self._count, "pairs_taken_again": 0}
        self.details: Mapping[str, Any] = self._said

    def sample(self, count: int) -> Sequence[int]:
        return [self._pair_ns() for _ in range(count)]

    def replay(self) -> None:
        self._turns.run(self._count)

    def close(self) -> None:
        """Programs go with the kernel."""

    def _pair_ns(self) -> int:
        for attempt in range(PAIRS_AT_MOST):
            self._said["pairs_taken_again"] += attempt > 0
            difference_ns = self._timed_ns(2 * self._count) - self._timed_ns(self._count)
            if difference_ns > 0:
                break
        return difference_ns

    def _timed_ns(self, turns: int) -> int:
        began_ns = time.perf_counter_ns()
        self._turns.run(turns)
        return time.perf_counter_ns() - began_ns

    def _sized(self, sample_s: float) -> int:
        """Turns whose work lasts a sample, and well over what a program costs beside it."""
        short, long = TURNS_AT_LEAST, 4 * TURNS_AT_LEAST
        for count in (short, long):
            self._turns.ready(count)
            self._turns.run(count)
        short_s, long_s = (min(self._timed_ns(count) for _ in range(3)) / 1e9 for count in (short, long))
        turn_s = max((long_s - short_s) / (long - short), 1e-8)
        beside_s = max(short_s - short * turn_s, 0.0)
        wanted_s = max(sample_s, STEADY_SHARE * beside_s)
        return max(TURNS_AT_LEAST, min(TURNS_AT_MOST, round(wanted_s / turn_s)))
