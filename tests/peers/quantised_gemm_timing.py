"""Times of ``quantised_gemm``: a captured graph of launches over rotating copies, and the bandwidth of reading."""

from functools import partial
from statistics import median

import torch

from tests.peers.quantised_gemm_ways import DEVICE, Way

GRAPH_S = 4e-3
READ_BYTES = 4 << 30


class Timed:
    """A graph of launches over the copies, in rotation, for about ``GRAPH_S``."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for launch in way.launches:
                launch()
        torch.cuda.synchronize()
        self._capture(len(way.launches))
        self.time_s()
        launch_s = self.time_s()
        copies = len(way.launches)
        self._capture(copies * max(1, round(GRAPH_S / launch_s / copies)))
        self.time_s()
        self.times_s: list[float] = []

    def _capture(self, count: int) -> None:
        self._count = count
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            for index in range(count):
                self.way.launches[index % len(self.way.launches)]()

    def time_s(self) -> float:
        """Seconds of one launch, over one replay."""
        self._start.record()
        self._graph.replay()
        self._end.record()
        self._end.synchronize()
        return float(self._start.elapsed_time(self._end)) * 1e-3 / self._count

    def round(self) -> None:
        self.times_s.append(self.time_s())

    @property
    def median_s(self) -> float:
        return float(median(self.times_s))


def read_bandwidth() -> float:
    """Bytes a second of a kernel that reads far more than any cache holds."""
    from backends.triton.read import row_sums

    matrix = torch.ones(READ_BYTES // 4 // 16384, 16384, device=DEVICE)
    sums = torch.empty(len(matrix), device=DEVICE)
    way = Way("read", [partial(row_sums, matrix, sums)], sums)
    way.launches[0]()
    times = []
    for _ in range(9):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        way.launches[0]()
        end.record()
        end.synchronize()
        times.append(float(start.elapsed_time(end)) * 1e-3)
    return float(matrix.nbytes / median(times))
