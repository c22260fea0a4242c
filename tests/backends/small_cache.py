"""The CPU backend on a machine whose last-level cache is said to be small.

A run calibrates over eight times that cache: on a host with 300 MiB of it, that is gigabytes and most of a minute.
"""

from collections.abc import Sequence
from dataclasses import replace

from backends.cpu import CpuBackend
from suite.backend import DeviceInfo
from suite.outcome import Evidence

LLC_BYTES = 1 << 20
TARGET = f"{__name__}:SmallCacheCpu"


class SmallCacheCpu(CpuBackend):
    """See the module."""

    evidence = Evidence.SIMULATED

    def devices(self) -> Sequence[DeviceInfo]:
        return [replace(device, llc_bytes=LLC_BYTES) for device in super().devices()]
