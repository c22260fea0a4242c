"""The clock a GPU really had: cycles per second counted on the device itself, around a window of work.

A kernel of a few blocks per multiprocessor reads the cycle counter, the global timer and the multiprocessor's id before and
after the window.  Readings of one multiprocessor are paired; their median is the window's clock.  The driver's clock is
a sample and reads high under load, so this one, not that, is what a ceiling at the clock is computed from.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from backends.triton.clock_kernels import FIELDS, clock_kernel

Readings = NDArray[np.int64]

# More blocks than multiprocessors: a block may land twice on one before every one has had its own.
BLOCKS_PER_UNIT = 4


class Window(NamedTuple):
    """Clock of one window: the median over multiprocessors (Hz), their relative spread, and its length (seconds)."""

    hz: float
    spread: float
    seconds: float


class DeviceClock:
    """Marks are enqueued on the current stream like any kernel; ``windows`` pairs them up once the device is idle."""

    def __init__(self, units: int, marks: int = 64) -> None:
        self._readings = torch.zeros((marks, units * BLOCKS_PER_UNIT, FIELDS), dtype=torch.int64, device="cuda")
        self._reader = clock_kernel(amd_target())
        self._used = 0
        self.mark()  # compiles and loads the kernel, outside any window
        torch.cuda.synchronize()
        self._used = 0

    def mark(self) -> None:
        """Enqueue one reading; marks beyond the buffer's room are dropped in pairs."""
        if self._used < len(self._readings):
            kernel, constants = self._reader
            kernel[(self._readings.shape[1],)](self._readings[self._used], num_warps=1, **constants)
            self._used += 1

    def windows(self) -> list[Window]:
        """Every window between an odd mark and the next; waits for the device and forgets the marks."""
        torch.cuda.synchronize()
        readings = self._readings[: self._used].cpu().numpy()
        self._used = 0
        pairs = zip(readings[::2], readings[1::2], strict=False)
        return [window for before, after in pairs if (window := pair(before, after)) is not None]


def pair(before: Readings, after: Readings) -> Window | None:
    """Clock between two readings, each rows of (unit, cycles, nanoseconds); ``None`` where no unit is in both.

    Of a unit that was read twice, the first before and the last after count.
    """
    first, opened = np.unique(before[:, 0], return_index=True)
    last, closed = np.unique(after[::-1, 0], return_index=True)
    _, of_first, of_last = np.intersect1d(first, last, assume_unique=True, return_indices=True)
    cycles, ns = (after[::-1][closed[of_last], 1:] - before[opened[of_first], 1:]).T
    counted = (cycles > 0) & (ns > 0)
    if not counted.any():
        return None
    clocks = np.sort(cycles[counted] / ns[counted] * 1e9)
    hz = float(clocks[len(clocks) // 2])
    return Window(hz, float(clocks[-1] - clocks[0]) / hz, int(ns.max()) * 1e-9)


def amd_target() -> str | None:
    """The instruction set of the current device (``gfx942``), without its features; ``None`` on NVIDIA."""
    if torch.version.hip is None:
        return None
    name: str = torch.cuda.get_device_properties(torch.cuda.current_device()).gcnArchName
    return name.partition(":")[0]
