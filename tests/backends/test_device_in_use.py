"""Facts of a CUDA device are those of the one that computes, whatever else the host holds and in whatever order it lists it."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

import backends.cuda
from backends.cuda import CudaBackend
from backends.telemetry.nvml import Nvml
from suite.hardware.match import match
from tests.backends.fake_nvml import FakeNvml, NVMLError

A100, H100_NVL = "8f3c0a52-aaaa", "1b77d9e0-bbbb"
MAX_SM_MHZ = {A100: 1410, H100_NVL: 1785}
LIMIT_MW = {A100: 400_000, H100_NVL: 310_000}


class TwoGpus(FakeNvml):
    """A host that lists an H100 NVL first; handles are the UUIDs."""

    def nvmlDeviceGetHandleByUUID(self, uuid: Any) -> Any:  # noqa: N802
        known = str(uuid).removeprefix("GPU-")
        if known not in MAX_SM_MHZ:
            raise NVMLError(6)
        return known

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:  # noqa: N802
        return (H100_NVL, A100)[index]

    def nvmlDeviceGetMaxClockInfo(self, handle: Any, kind: Any) -> Any:  # noqa: N802
        return MAX_SM_MHZ[handle] if kind == self.NVML_CLOCK_SM else 1593

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: Any) -> Any:  # noqa: N802
        return LIMIT_MW[handle]


def test_a_job_on_the_second_gpu_of_a_host_is_judged_by_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """lspci showed an H100 NVL, and an A100 computed (torchtitan#4800)."""
    visible = SimpleNamespace(
        name="NVIDIA A100-SXM4-80GB",
        uuid=A100,
        total_memory=85_049_016_320,
        major=8,
        minor=0,
        multi_processor_count=108,
        L2_cache_size=40 * 2**20,
    )
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: [visible][index])
    monkeypatch.setattr(backends.cuda, "load_nvml", lambda: Nvml(TwoGpus()))
    (info,) = CudaBackend().devices()
    assert (info.max_clock_hz, info.power_limit_w) == (1410e6, 400.0)
    spec = match(info).spec
    assert spec is not None
    assert spec.id == "nvidia-a100-sxm4-80gb"
    assert spec.peak_flop_s("bf16") == 312e12
