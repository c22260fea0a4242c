"""Times a collective: after a barrier on every rank, until the slowest has its result."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.launches.host_sampler import clock_resolution_s
from backends.torch.collective.kernel import CollectiveKernel
from backends.torch.collective.orders import Sample
from suite.collectives.growth import launches_in_range

NS = 1e-9
AT_ONCE = 4096  # iterations in one order: how long a rank goes without answering, and how many are kept
KEPT_TIMES = 64  # iterations of which every rank's time is stored


class SlowestRankSampler:
    """``details`` tell what each rank took in the latest ``AT_ONCE`` iterations before a replay: averages hide stragglers."""

    method = "slowest rank"
    launches = 1

    def __init__(self, kernel: CollectiveKernel) -> None:
        self._kernel = kernel
        self._latest: deque[NDArray[np.int64]] = deque(maxlen=AT_ONCE)  # nanoseconds of all ranks
        self.resolution_s = clock_resolution_s()
        self.details: Mapping[str, Any] = {}
        self.replay()

    def sample(self, count: int) -> Sequence[int]:
        durations_ns: list[int] = []
        while len(durations_ns) < count:
            asked = min(count - len(durations_ns), AT_ONCE)
            by_rank = np.array(self._kernel.crew.ask(Sample(self._kernel.ticket, asked)), dtype=np.int64)
            self._latest.extend(by_rank.T)
            durations_ns += by_rank.max(axis=0).tolist()
        return durations_ns

    def replay(self) -> None:
        self._kernel.enqueue(0)
        self.details = self._rank_times()

    def close(self) -> None:
        """The kernel owns the buffers."""

    def _said(self) -> dict[str, Any]:
        task, logging = self._kernel.task, self._kernel.logging
        fresh = launches_in_range(task.message, task.in_place)
        return {
            "sets": 1,
            "flush_bytes": 0,
            "ranks": task.ranks,
            "since": "a barrier of all ranks",
            "untimed": "a barrier of all ranks before each iteration",
            **({"iterations_on_the_same_data": fresh} if fresh else {}),
            **({"logging": logging} if logging else {}),
        }

    def _rank_times(self) -> dict[str, Any]:
        said = self._said()
        if not self._latest:
            return said
        times_ns = np.stack(list(self._latest))  # iterations x ranks
        slowest = np.bincount(times_ns.argmax(axis=1), minlength=times_ns.shape[1]) / len(times_ns)
        strided = times_ns[:: -(-len(times_ns) // KEPT_TIMES)]
        return {
            **said,
            "iterations": len(times_ns),
            "iterations_are": f"the latest {AT_ONCE} iterations, warm-up included",
            "rank_p50_s": _seconds(np.quantile(times_ns, 0.5, axis=0)),
            "rank_p95_s": _seconds(np.quantile(times_ns, 0.95, axis=0)),
            "rank_max_s": _seconds(times_ns.max(axis=0)),
            "slowest_share": [round(float(share), 4) for share in slowest],
            "rank_times_ns": strided.tolist(),
        }


def _seconds(times_ns: NDArray[Any]) -> list[float]:
    return [round(float(each) * NS, 9) for each in times_ns]
