"""The clock that a GPU has over one sample: its counters read before and after, as nodes of the graph that is timed.

The kernels write into memory of the host, so that no copy is queued and nothing waits: once a sample is over, its readings are
there.
"""

import torch

from backends.triton.clock_kernels import FIELDS, clock_kernel
from backends.triton.device_clock import Readings, amd_target, pair


class SampleClock:
    """Readings of one graph; each replay of it writes them anew.

    One block for each of the device's ``units`` (multiprocessors): they start on an idle device, which spreads them.
    """

    def __init__(self, units: int) -> None:
        rows = units + units % 2  # kernels are compiled for rows of 24 bytes that begin on a boundary of 16
        self._readings = torch.zeros((2, rows, FIELDS), dtype=torch.int64, pin_memory=True)
        self._units = units
        self._seen: Readings = self._readings.numpy()
        self._reader = clock_kernel(amd_target())
        self.enqueue(0)  # compiles and loads the kernel, outside any capture
        self.enqueue(1)
        torch.cuda.synchronize()

    def enqueue(self, end: int) -> None:
        """Read the counters behind whatever is queued: 0 before the sample, 1 after it."""
        kernel, constants = self._reader
        kernel[(self._units,)](self._readings[end], num_warps=1, **constants)

    def khz(self) -> int | None:
        """The clock between the two latest readings, which must be over; ``None`` where no unit was in both."""
        before, after = self._seen[:, : self._units]
        window = pair(before, after)
        return round(window.hz / 1e3) if window is not None else None
