"""Timing by the slope: what N more turns add, so that starting and ending a program is in no sample.

Two ways to take turns: inside one program (``loop``), or as calls that queue up behind each other (``queue``) where the
compiler will not have the loop.
"""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from backends.jax.kernel import XlaKernel
from backends.jax.program import Loop

TURNS_AT_LEAST = 2  # a loop of one turn is inlined, and nothing can be said of what became of it
TURNS_AT_MOST = 1 << 16
# A turn is launched by the host, with a kernel that counts it: short launches come several to a turn.
TURN_S = 2e-4
LAUNCHES_IN_A_TURN = 16
# Starting a program and hearing of its end takes tens of microseconds and varies by as much: a sample must outweigh it.
STEADY_SHARE = 10
GROWTH_AT_MOST = 16
TRIALS_AT_MOST = 6
PAIRS_AT_MOST = 3
# Where handing launches over takes this share of the time they take, the host is what is timed.
HOST_SHARE_AT_MOST = 0.8


class Turns(Protocol):
    """A way to run whole turns of ``rotations`` over every input set."""

    method: str
    rotations: int

    def ready(self, turns: int) -> None:
        """Compile what ``run`` needs for this number."""
        ...

    def run(self, turns: int) -> None:
        """Run them and wait for their end."""
        ...

    def details(self) -> Mapping[str, Any]: ...


class LoopTurns:
    """Turns inside one program; ``NotALoop`` comes from ``ready`` where the compiler does not keep them there.

    ``launch_s`` is about how long a launch takes.
    """

    method = "loop"

    def __init__(self, kernel: XlaKernel, launch_s: float = TURN_S) -> None:
        self._kernel = kernel
        wanted = math.ceil(TURN_S / max(launch_s * kernel.sets, 1e-9))
        self.rotations = max(1, min(wanted, LAUNCHES_IN_A_TURN // kernel.sets))
        self._loops: dict[int, Loop] = {}

    def ready(self, turns: int) -> None:
        if turns not in self._loops:
            self._loops[turns] = self._kernel.loop(turns, self.rotations)

    def run(self, turns: int) -> None:
        self._kernel.run(self._loops[turns], self.rotations)

    def details(self) -> Mapping[str, Any]:
        loops = self._loops.values()
        return {
            "loop_compile_s": sum(loop.program.compile_s for loop in loops),
            "tie": "/".join(sorted({loop.tie for loop in loops})),
            "rotations_in_a_turn": self.rotations,
            "products_in_a_turn": max(loop.audit.products for loop in loops),
        }


class QueueTurns:
    """Turns as calls, each behind the one before it; ``why`` is why they are not inside a program."""

    method = "queue"
    rotations = 1

    def __init__(self, kernel: XlaKernel, why: str) -> None:
        self._kernel = kernel
        self._why = why
        self.enqueuing_ns = self.running_ns = 0

    def ready(self, turns: int) -> None:
        """Single launches are compiled already."""

    def run(self, turns: int) -> None:
        began_ns = time.perf_counter_ns()
        for _ in range(turns):
            for set_index in range(self._kernel.sets):
                self._kernel.enqueue(set_index)
        self.enqueuing_ns = time.perf_counter_ns() - began_ns
        self._kernel.wait_for_latest()
        self.running_ns = time.perf_counter_ns() - began_ns

    def host_share(self, turns: int) -> float:
        """How much of the time that turns take goes by before the last launch is handed over."""
        self.run(turns)
        self.run(turns)
        return self.enqueuing_ns / max(self.running_ns, 1)

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
        self.method = turns.method
        self.launches = self._count * turns.rotations * sets
        self.resolution_s = 2 * resolution_s
        self._said: dict[str, Any] = {"sets": sets, **turns.details(), "turns": self._count, "pairs_taken_again": 0}
        self.details: Mapping[str, Any] = self._said

    def sample(self, count: int) -> Sequence[int]:
        return [self._pair_ns() for _ in range(count)]

    def replay(self) -> None:
        """Both lengths: either could be the one that is wrong."""
        self._turns.run(self._count)
        self._turns.run(2 * self._count)

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
        """Turns whose work lasts a sample, and well over what a program costs beside it: grown until it does."""
        count = TURNS_AT_LEAST
        for _ in range(TRIALS_AT_MOST):
            for turns in (count, 2 * count):
                self._turns.ready(turns)
                self._turns.run(turns)
            short_s, long_s = (min(self._timed_ns(turns) for _ in range(3)) / 1e9 for turns in (count, 2 * count))
            work_s = max(long_s - short_s, 1e-9)
            wanted_s = max(sample_s, STEADY_SHARE * max(short_s - work_s, 0.0))
            if work_s >= wanted_s / 2 or count == TURNS_AT_MOST:
                break
            count = min(TURNS_AT_MOST, count * max(2, min(GROWTH_AT_MOST, round(wanted_s / work_s))))
        else:
            for turns in (count, 2 * count):
                self._turns.ready(turns)
                self._turns.run(turns)
        return count


def launch_s(kernel: XlaKernel) -> float:
    """About how long a launch takes, by calls that queue up: what the host needs for one where that is longer."""
    queued = QueueTurns(kernel, "")
    turns = max(1, LAUNCHES_IN_A_TURN // kernel.sets)
    queued.host_share(turns)
    return queued.running_ns / 1e9 / (turns * kernel.sets)
