"""Timing on the device where a graph cannot be captured, or where a cold cache needs a flush between launches.

A batch of launches is queued behind a kernel that spins; by the time it ends, the host is done and the device runs
through the batch without waiting.  Every launch has its own pair of events, with the flush outside it.

Nothing else runs beside a batch: it begins and ends with the whole device idle, and in between this process enqueues on
one stream.  A batch cannot stand still either: the spin ends by itself, so that a kernel which has to be loaded only
behind it makes the batch late, which shows, and it is taken again.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import torch

from backends.launches.flush import CacheFlush
from backends.launches.plan import Launchable
from backends.torch.events import EVENT_RESOLUTION_S

BATCH = 32
# About 2 ms; doubled whenever the host was slower.
SPIN_CYCLES = 4_000_000
SPIN_CYCLES_AT_MOST = 1_000_000_000
NOTHING_AT_MOST = 1.1  # empty pairs of events


class SpinSampler:
    """Times single launches; ``details["hidden"]`` says whether every batch was queued before its spin ended.

    ``works`` is false for a kernel that is meant to do nothing.
    """

    method = "spin"
    launches = 1
    resolution_s = EVENT_RESOLUTION_S

    def __init__(
        self,
        kernel: Launchable,
        sets: int,
        flush: CacheFlush | None,
        details: Mapping[str, Any] | None = None,
        cuda: Any = torch.cuda,
        works: bool = True,
    ) -> None:
        self._works = works
        self._kernel = kernel
        self._sets = sets
        self._flush = flush
        self._cuda = cuda
        self._cycles = SPIN_CYCLES
        self._hidden = True
        self._next = 0
        self._gate = cuda.Event()
        self._events = [(cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)) for _ in range(BATCH)]
        self._fixed: dict[str, Any] = {
            "sets": sets,
            "flush_bytes": flush.size_bytes if flush is not None else 0,
            **(details or {}),
        }
        self.details: Mapping[str, Any] = self._fixed
        # A kernel that is still to be loaded would wait for the spin to end: load everything first.
        self.replay()
        self._fixed["empty_pair_s"] = self._empty_pair_s()

    def sample(self, count: int) -> Sequence[int]:
        self._cuda.synchronize()  # work of any stream that is still under way would share the device with the first batch
        durations_ns: list[int] = []
        while len(durations_ns) < count:
            durations_ns.extend(self._batch(min(BATCH, count - len(durations_ns))))
        self._refuse_nothing(durations_ns)
        return durations_ns

    def replay(self) -> None:
        if self._flush is not None:
            self._flush()
        for set_index in range(self._kernel.sets):
            self._kernel.enqueue(set_index)
        self._cuda.synchronize()

    def close(self) -> None:
        self._flush = None

    def _batch(self, size: int) -> list[int]:
        """Take a batch; one whose spin ended too early is taken again behind a longer spin."""
        while True:
            hidden = self._queue(size)
            self._cuda.synchronize()
            if hidden or self._cycles >= SPIN_CYCLES_AT_MOST:
                break
            self._cycles *= 2
        self._hidden &= hidden
        self.details = {**self._fixed, "spin_cycles": self._cycles, "hidden": self._hidden}
        return [round(float(start.elapsed_time(end)) * 1e6) for start, end in self._events[:size]]

    def _refuse_nothing(self, durations_ns: Sequence[int]) -> None:
        """A launch that works takes longer than a pair of events around nothing, unless it does so on another stream."""
        taken_s = median(durations_ns) / 1e9
        if not self._works or taken_s >= NOTHING_AT_MOST * self._fixed["empty_pair_s"]:
            return
        self._fixed["empty_pair_s"] = self._empty_pair_s()  # the clock may have risen since it was first read
        if taken_s < NOTHING_AT_MOST * self._fixed["empty_pair_s"]:
            raise RuntimeError(
                f"a launch reads {taken_s * 1e6:.3g} us, as a pair of events around nothing does: it works on a stream of its "
                "own, where no event sees it, or not at all"
            )

    def _queue(self, size: int) -> bool:
        self._cuda._sleep(self._cycles)
        self._gate.record()
        for start, end in self._events[:size]:
            if self._flush is not None:
                self._flush()
            start.record()
            self._kernel.enqueue(self._next % self._sets)
            end.record()
            self._next += 1
        return not self._gate.query()

    def _empty_pair_s(self) -> float:
        """What a pair of events around nothing reads: an offset in every sample, not what the timer resolves."""
        while not self._queue_nothing() and self._cycles < SPIN_CYCLES_AT_MOST:
            self._cuda.synchronize()
            self._cycles *= 2
        self._cuda.synchronize()
        return max(float(median(start.elapsed_time(end) for start, end in self._events)) / 1e3, 1e-9)

    def _queue_nothing(self) -> bool:
        self._cuda._sleep(self._cycles)
        self._gate.record()
        for start, end in self._events:
            start.record()
            end.record()
        return not self._gate.query()
