"""What cold and memory mean on devices whose runtime shows only a part of their cache."""

import pytest

from suite.backend import DeviceInfo
from suite.jobs.gemm import GemmSettings
from suite.plan import plan
from suite.planned import DeviceSlot, PlannedCase
from suite.settings import RunConfig

MIB = 2**20
INFINITY_CACHE = 256 * MIB


def mi300x(backend: str, llc_bytes: int | None) -> DeviceInfo:
    """torch on ROCm reports the L2 of one die in eight (ROCm#4203); JAX reports none."""
    return DeviceInfo(
        backend, 0, "AMD Instinct MI300X", "a" * 16, 196_592 * MIB, "gfx942", visible_units=304, llc_bytes=llc_bytes
    )


def planned(info: DeviceInfo) -> list[PlannedCase]:
    config = RunConfig(jobs={"gemm": GemmSettings(formats=["bf16"], shapes=["1024"])})
    return list(plan(config, [DeviceSlot(0, info.backend, "m:C", info)]))


@pytest.mark.parametrize(("backend", "llc_bytes"), [("rocm", 4 * MIB), ("xla", None)])
def test_cold_on_an_mi300x_rotates_over_the_infinity_cache(backend: str, llc_bytes: int | None) -> None:
    """By the 4 MB that are reported, three input sets would do: all of them lie in the 256 MB behind."""
    cold = next(
        c for c in planned(mi300x(backend, llc_bytes)) if c.case.workload.job == "gemm" and c.case.regime.cache == "cold"
    )
    assert (cold.sets - 1) * 3 * 1024 * 1024 * 2 >= 3 * INFINITY_CACHE


@pytest.mark.parametrize(("backend", "llc_bytes"), [("rocm", 4 * MIB), ("xla", None)])
def test_memory_is_calibrated_cold_and_far_beyond_the_cache(backend: str, llc_bytes: int | None) -> None:
    """A copy of what fits in the cache ran at 5563 GB/s on memory of 5300 (ROCm/iris#119).

    Only a cold result is held against the bandwidth of the memory, so that a calibration has to be one.
    """
    cases = [c for c in planned(mi300x(backend, llc_bytes)) if c.case.workload.job == "calibration"]
    memory = [c for c in cases if c.case.workload.param("op") != "empty"]
    assert {c.case.workload.param("op") for c in memory} == {"read", "copy", "triad"}
    assert {c.case.regime.cache for c in memory} == {"cold"}
    assert min(c.work.compulsory_bytes for c in memory) >= 8 * INFINITY_CACHE
