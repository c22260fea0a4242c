"""Timing on the device by replaying captured graphs of launches that rotate over the input sets, or stay with one each.

A ring of graphs keeps the device busy: while one runs, the next ones are queued, and a graph's events are read before it
is queued again.  The events are nodes of the graph where torch can record them there, so that the gap between two graph
launches is in no sample; else they stand around each replay.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch

from backends.launches.plan import (
    HandingOver,
    Launchable,
    LaunchPlan,
    estimate_launch_s,
    hands_over,
    plan_launches,
    plan_stays,
)
from backends.torch.capture import Capture
from backends.torch.events import EVENT_RESOLUTION_S
from backends.torch.graph_names import kernel_names
from backends.torch.workspace_places import WorkspacePlaces

# Deep enough that the host's time for reading one sample never lets the device run dry.
RING = 4
# A node costs host time to capture and device memory to hold.
NODES_AT_MOST = 2048


class Warm(NamedTuple):
    """Launches are to find what the one before left in the cache; ``kept`` says whether it can keep anything of a set."""

    kept: bool


class Clock(Protocol):
    """The device's own counters, read by nodes of a graph."""

    def enqueue(self, end: int) -> None:
        """Read them behind whatever is queued: 0 before a sample, 1 after it."""
        ...

    def khz(self) -> int | None:
        """The clock between the latest two readings, which are over."""
        ...


class Recording:
    """One captured graph with the pair of events that times it.

    ``inside`` says whether the events are nodes of the graph; ``pool`` is memory to share with other graphs that live.  Results
    that are handed over are so behind the last event.  ``clock`` is read before the first event and behind the last, where both
    are nodes.  ``warmed`` launches the first set once before that, which only events that are nodes leave out: what the graph
    before this one left in the cache is of another set.  ``places`` are those that libraries work in; they are in ``pool``.
    """

    def __init__(
        self,
        kernel: Launchable,
        order: Sequence[int],
        capture: Capture,
        inside: bool,
        pool: Any | None = None,
        clock: Clock | None = None,
        warmed: bool = False,
        places: WorkspacePlaces | None = None,
    ) -> None:
        cuda = capture.cuda
        external = {"external": True} if inside else {}
        self._inside = inside
        self._start = cuda.Event(enable_timing=True, **external)
        self._end = cuda.Event(enable_timing=True, **external)
        self._done = cuda.Event()
        self._graph = cuda.CUDAGraph()
        self._clock = clock if inside else None
        enqueue = kernel.enqueue if places is None else partial(places.enqueue, kernel)
        with capture.into(self._graph, pool):
            if warmed:
                enqueue(order[0])
            if self._clock is not None:
                self._clock.enqueue(0)
            if inside:
                self._start.record()
            for set_index in order:
                enqueue(set_index)
            if inside:
                self._end.record()
            if self._clock is not None:
                self._clock.enqueue(1)
            if places is not None:
                places.leave()
            if isinstance(kernel, HandingOver):
                kernel.hand_over(set(order))

    def launch(self) -> None:
        """Queue one replay behind whatever is queued."""
        if not self._inside:
            self._start.record()
        self._graph.replay()
        if not self._inside:
            self._end.record()
        # Waiting needs an event of the stream's own: one recorded inside a graph is no promise about the latest launch.
        self._done.record()

    def duration_ns(self) -> int:
        """Wait for the latest replay and return how long it took."""
        self._done.synchronize()
        return round(float(self._start.elapsed_time(self._end)) * 1e6)

    def clock_khz(self) -> int | None:
        """The device's clock over the replay that ``duration_ns`` waited for; ``None`` where it was not counted."""
        return self._clock.khz() if self._clock is not None else None


class GraphSampler:
    """Times graphs of ``launches`` launches over the first ``sets`` input sets.

    The launches rotate over the sets; those that are ``warm`` stay with one set in each graph, after one that is not timed
    where the cache holds something of a set; all of them with the first where events cannot be nodes.  ``clock`` makes what
    counts the device's clock over a graph; without it, or where events cannot be nodes, none is counted.
    Raises ``RuntimeError`` where the kernel cannot be captured.
    """

    method = "graph"
    resolution_s = EVENT_RESOLUTION_S

    def __init__(
        self,
        kernel: Launchable,
        sets: int,
        sample_s: float,
        clock: Callable[[], Clock] | None = None,
        cuda: Any = torch.cuda,
        warm: Warm | None = None,
    ) -> None:
        self._kernel = kernel
        self._clocks_khz: list[int | None] = []
        self._cuda = cuda
        capture = Capture(cuda)
        capture.warm_up(kernel, sets)
        inside = _events_inside(kernel, capture)
        if not inside and hands_over(kernel):
            raise RuntimeError("events around a replay would time how results are handed over; this torch has none in graphs")
        if warm is not None and not inside:  # a launch ahead would be timed, and without it the first one of a graph is cold
            sets = 1
        launch_s = _estimate_s(kernel, capture, inside, 1 if warm else sets, sample_s)
        if warm is None:
            self._plan = plan_launches(launch_s, sample_s, sets, NODES_AT_MOST)
        else:
            self._plan = plan_stays(launch_s, sample_s, sets, NODES_AT_MOST * RING // max(RING, sets))
        places = WorkspacePlaces(capture.workspace_bytes, self._plan.sets)
        self._ring = _ring(kernel, self._plan, capture, inside, clock, warm, places)
        self._next = 0
        self.launches = self._plan.launches
        self.details: Mapping[str, Any] = {
            "sets": sets,
            "order": "one set a graph" if warm else "rotating",
            "flush_bytes": 0,
            "graph_launches": self._plan.launches,
            "graphs": len(self._ring),
            "events": "in the graph" if inside else "around each replay",
            "clock": "counted over each graph" if inside and clock else "not counted",
            "workspaces": places.count,
            "workspace_bytes": capture.workspace_bytes,
            "kernels": kernel_names(kernel, capture),
            **({"untimed": "results copied into the outputs after each graph"} if hands_over(kernel) else {}),
        }
        self.replay()

    def sample(self, count: int) -> Sequence[int]:
        durations_ns: list[int] = []
        queued: deque[Recording] = deque()
        self._clocks_khz = []

        def read(recording: Recording) -> None:
            durations_ns.append(recording.duration_ns())
            self._clocks_khz.append(recording.clock_khz())

        for _ in range(count):
            if len(queued) == len(self._ring):
                read(queued.popleft())
            recording = self._ring[self._next % len(self._ring)]
            recording.launch()
            queued.append(recording)
            self._next += 1
        for recording in queued:
            read(recording)
        return durations_ns

    def clocks_khz(self) -> Sequence[int]:
        counted = [clock for clock in self._clocks_khz if clock is not None]
        return counted if len(counted) == len(self._clocks_khz) else []

    def replay(self) -> None:
        for recording in self._ring[: self._plan.period]:
            recording.launch()
        for set_index in range(self._plan.sets, self._kernel.sets):
            self._kernel.enqueue(set_index)
        self._cuda.synchronize()

    def close(self) -> None:
        """Drop the graphs, and with them the memory they hold."""
        self._ring = []
        self._cuda.synchronize()


def _ring(
    kernel: Launchable,
    plan: LaunchPlan,
    capture: Capture,
    inside: bool,
    clock: Callable[[], Clock] | None,
    warm: Warm | None,
    places: WorkspacePlaces,
) -> list[Recording]:
    """As many graphs as keep the device busy and let every set be used equally often."""
    length = plan.period * -(-RING // plan.period)
    pool = capture.cuda.graph_pool_handle()
    warmed = warm is not None and warm.kept and plan.sets > 1
    with places:
        return [
            Recording(kernel, plan.order(sample), capture, inside, pool, clock() if clock and inside else None, warmed, places)
            for sample in range(length)
        ]


def _events_inside(kernel: Launchable, capture: Capture) -> bool:
    """Whether timing events can be nodes of a graph here: tried once, on one launch."""
    try:
        trial = Recording(kernel, [0], capture, inside=True)
        trial.launch()
        return trial.duration_ns() > 0
    except (TypeError, RuntimeError):
        # If the kernel itself is at fault, the capture without events fails the same way and is not caught.
        capture.cuda.synchronize()
        return False


def _estimate_s(kernel: Launchable, capture: Capture, inside: bool, sets: int, sample_s: float) -> float:
    def time_launches(count: int) -> float:
        trial = Recording(kernel, [launch % sets for launch in range(count)], capture, inside)
        trial.launch()  # the first replay uploads the graph
        trial.duration_ns()
        trial.launch()
        return trial.duration_ns() / 1e9

    return estimate_launch_s(time_launches, sets, sample_s, max(sets, NODES_AT_MOST))
