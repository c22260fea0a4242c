"""Memory that a runtime does not tell is unknown, not 0 bytes (GB10, Jetson Thor; JAX without memory statistics)."""

import pytest

from suite.backend import DeviceInfo
from suite.commands.devices import Found, _lines
from suite.jobs.gemm import GemmSettings
from suite.plan import plan
from suite.planned import DeviceSlot
from suite.probe import ProbeResult
from suite.settings import RunConfig

GB10 = DeviceInfo("xla", 0, "NVIDIA GB10", "u" * 16, 0, "sm_121", visible_units=48)


@pytest.mark.parametrize("oversize", ["refuse", "record"])
def test_memory_that_is_not_told_refuses_no_case(oversize: str) -> None:
    config = RunConfig(jobs={"gemm": GemmSettings(formats=["bf16"], shapes=["512"])}, oversize=oversize)
    cases = plan(config, [DeviceSlot(0, "xla", "backends.xla:XlaBackend", GB10)])
    assert {case.verdict for case in cases} == {None}
    memory = [c for c in cases if c.case.workload.job == "calibration" and c.case.workload.param("op") != "empty"]
    assert min(c.work.compulsory_bytes for c in memory) > 0


def test_devices_does_not_say_that_it_has_none() -> None:
    lines = "\n".join(_lines(Found("xla", ProbeResult((GB10,), ""), ())))
    assert "0 B" not in lines
