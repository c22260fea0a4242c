"""The XLA backend on a CPU whose last-level cache is said to be small; see ``tests.backends.small_cache``."""

from dataclasses import replace

from backends.xla import XlaBackend
from suite.backend import DeviceInfo
from suite.outcome import Evidence
from tests.backends.small_cache import LLC_BYTES

TARGET = f"{__name__}:SmallCacheXla"


class SmallCacheXla(XlaBackend):
    """See the module."""

    evidence = Evidence.SIMULATED

    def _describe_cpu(self, index: int) -> DeviceInfo:
        return replace(super()._describe_cpu(index), llc_bytes=LLC_BYTES)
