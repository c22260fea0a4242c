"""Sustained times of ways to compute one thing: graphs of launches over rotating copies, which take turns."""

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple, Protocol

import torch

GRAPH_S = 15e-3

Launch = Callable[[], Any]


class Launches(Protocol):
    """A named way; ``launches`` has one for each copy of the inputs."""

    @property
    def name(self) -> str: ...

    @property
    def launches(self) -> Sequence[Launch]: ...


class Way(NamedTuple):
    """One way to compute a case; ``launches`` has one for each copy of the inputs and returns what it computes."""

    name: str
    launches: Sequence[Launch]


def aside() -> torch.cuda.Stream:
    """A new stream that goes on from the current one."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    return stream


class Timed:
    """A graph of launches over the copies, in rotation, for about ``graph_s``.

    ``stream`` is for a way that has to be captured where it was made: a backward pass runs on the stream of its forward pass.
    Without it the first launches run on a new stream, and the capture is on torch's own.
    """

    def __init__(self, way: Launches, graph_s: float, stream: torch.cuda.Stream | None = None) -> None:
        self.way = way
        self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._stream = stream
        with torch.cuda.stream(stream or aside()):
            for launch in way.launches:
                launch()
        torch.cuda.synchronize()
        copies = len(way.launches)
        self._capture(copies)
        self.time_s()
        self._capture(copies * max(1, round(graph_s / self.time_s() / copies)))
        self.time_s()
        self.times_s: list[float] = []

    def _capture(self, count: int) -> None:
        self._count = count
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=self._stream):
            for index in range(count):
                self.way.launches[index % len(self.way.launches)]()

    def time_s(self) -> float:
        """Seconds of one launch, over one replay."""
        self._start.record()
        self._graph.replay()
        self._end.record()
        self._end.synchronize()
        return float(self._start.elapsed_time(self._end)) * 1e-3 / self._count

    @property
    def median_s(self) -> float:
        return float(median(self.times_s))


def timed_here(way: Way) -> Timed:
    """For ``GRAPH_S``, on the stream current now, which is the one that the way was made on."""
    return Timed(way, GRAPH_S, torch.cuda.current_stream())


def heat(timed: Timed, heat_s: float) -> None:
    """So that the clock is that of work that goes on."""
    began_s = time.monotonic()
    while time.monotonic() - began_s < heat_s:
        timed.time_s()


def take_turns(ways: Sequence[Timed], rounds: int, settle_s: float = 0.0) -> None:
    """Time each way once a round, in the other order every second round: a drift falls on all alike.

    For ``settle_s`` a way runs untimed first: under a limit of power its clock is then its own, not its neighbour's.
    """
    for turn in range(rounds):
        for each in ways if turn % 2 else reversed(ways):
            heat(each, settle_s)
            each.times_s.append(each.time_s())
