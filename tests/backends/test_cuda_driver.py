"""What is asked of the CUDA driver, on a stand-in that answers as it does."""

import ctypes
from typing import Any

import pytest

from backends.host.cuda_driver import CudaIdentity, DriverSilent, identify

UUID = bytes.fromhex("8a6d1b4c0f3e4b5a9c7d2e1f00112233")
ATTRIBUTES = {16: 132, 38: 62_914_560, 75: 9, 76: 0}


class FakeDriver:
    """An H200 as device 1."""

    def __init__(self, refuses: str = "") -> None:
        self.refuses = refuses

    def cuInit(self, flags: int) -> int:  # noqa: N802
        return 100 if self.refuses == "cuInit" else 0

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:  # noqa: N802
        device._obj.value = 7
        return 0 if ordinal == 1 else 101

    def cuDeviceGetUuid_v2(self, raw: Any, device: Any) -> int:  # noqa: N802
        assert device.value == 7
        ctypes.memmove(raw._obj, UUID, 16)
        return 0

    def cuDeviceGetPCIBusId(self, text: Any, size: int, device: Any) -> int:  # noqa: N802
        text.value = b"0000:1B:00.0"
        return 0

    def cuDeviceTotalMem_v2(self, total: Any, device: Any) -> int:  # noqa: N802
        total._obj.value = 150_109_880_320
        return 0

    def cuDeviceGetAttribute(self, value: Any, which: int, device: Any) -> int:  # noqa: N802
        value._obj.value = ATTRIBUTES[which]
        return 0


def test_a_device_is_known_by_what_the_driver_says() -> None:
    assert identify(1, FakeDriver()) == CudaIdentity(
        uuid="8a6d1b4c-0f3e-4b5a-9c7d-2e1f00112233",
        pci_bus_id="00000000:1b:00.0",
        memory_bytes=150_109_880_320,
        units=132,
        l2_bytes=62_914_560,
        capability=(9, 0),
    )


def test_a_call_that_fails_is_named_with_its_error() -> None:
    with pytest.raises(DriverSilent, match="cuInit answers with CUDA error 100"):
        identify(1, FakeDriver(refuses="cuInit"))
    with pytest.raises(DriverSilent, match="cuDeviceGet answers with CUDA error 101"):
        identify(0, FakeDriver())


def test_a_machine_without_a_driver_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backends.host.cuda_driver.LIBRARY", "libno-such-driver.so.1")
    with pytest.raises(DriverSilent, match="cannot be loaded"):
        identify(0)
