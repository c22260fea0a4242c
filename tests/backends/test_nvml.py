"""NVML: each channel in its unit, each refusal with the driver's reason, and devices that are only partly told."""

import csv
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backends.telemetry.gauges import ReadingLost
from backends.telemetry.nvidia import MEAN_OF_A_SECOND, OF_PROCESSES, nvml_telemetry
from backends.telemetry.nvml import NOT_A_PART, NvmlDevice, load_nvml
from backends.telemetry.others import DeviceAddress, count_others
from suite.backend import Channel
from suite.telemetry import UNITS
from tests.backends.fake_nvml import BOARD, FakeNvml, NVMLError, device_of, refuse
from tests.backends.windows import answered, window

DATA = Path(__file__).parent.parent / "data" / "nvidia-smi"


def channels_of(library: FakeNvml) -> dict[str, Channel]:
    """One window in which every gauge was asked, and counters of violations again after their first reading."""
    telemetry = nvml_telemetry(device_of(library), period_s=0.001)
    library.calls.clear()
    each_answered = answered(telemetry)

    def asked() -> bool:
        again = sum(name == "nvmlDeviceGetViolationStatus" for name, _ in library.calls) >= 8
        return each_answered() and (again or "nvmlDeviceGetViolationStatus" in library.without)

    return dict(window(telemetry, asked))


def latest(channels: dict[str, Channel], family: str) -> dict[str, float]:
    found = {name.partition(".")[2]: channel for name, channel in channels.items() if name.startswith(f"{family}.")}
    return {name: channel.values[-1] for name, channel in found.items() if channel.values}


def test_channels_in_units() -> None:
    channels = channels_of(FakeNvml())
    assert set(UNITS) <= set(channels)
    readings = {name: (channels[name].unit, channels[name].values[-1]) for name in UNITS if channels[name].values}
    assert readings == {
        "sm_clock": ("Hz", 1755e6),
        "memory_clock": ("Hz", 2619e6),
        "power": ("W", 691.0),
        "temperature": ("C", 61.0),
        "memory_temperature": ("C", 54.0),
        "throttle": ("mask", 4.0),
        "memory_used": ("bytes", float(1 << 30)),
        "pcie_tx": ("bytes/s", 0.0),
        "pcie_rx": ("bytes/s", 0.0),
    }
    assert {name for name, held in latest(channels, "throttle").items() if held} == {"sw_power_cap"}
    assert "under the 2 s" in channels["energy"].unavailable
    assert "one clock" in channels["sm_clock_spread"].unavailable


def test_violation_times_are_what_the_window_added() -> None:
    """Counters run since the driver was loaded: seven thousand seconds of power capping say nothing of this window."""
    library = FakeNvml()
    library.violation_ns = {0: 7_015_662_857_000, 1: 3_360_324_000}
    grows = library.nvmlDeviceGetViolationStatus

    def status(handle: Any, policy: int) -> Any:
        answer = grows(handle, policy)
        library.violation_ns[0] += 250_000_000 if policy == 0 else 0
        return answer

    library.nvmlDeviceGetViolationStatus = status
    channels = channels_of(library)
    held = latest(channels, "violation")
    assert set(held) == {
        "power",
        "thermal",
        "sync_boost",
        "board_limit",
        "low_utilization",
        "reliability",
        "app_clocks",
        "base_clocks",
    }
    assert held.pop("power") >= 0.25
    assert set(held.values()) == {0.0}
    assert channels["violation.power"].unit == "s"


def test_a_counter_of_before_the_window_is_no_violation_in_it() -> None:
    """RTX PRO 6000, driver 580: a counter that stands, and no reason active."""
    said = (DATA / "rtx_pro_6000_qd_performance.txt").read_text()
    counted = re.search(r"SW Power Capping +: (\d+) us", said)
    assert counted is not None
    assert "Active" in said
    assert not re.search(r": Active", said)
    library = FakeNvml(nvmlDeviceGetCurrentClocksThrottleReasons=lambda _handle: 0)
    library.violation_ns = {0: int(counted.group(1)) * 1000}
    channels = channels_of(library)
    assert latest(channels, "violation")["power"] == 0.0
    assert not any(latest(channels, "throttle").values())


def test_power_is_the_gpus_and_not_the_modules() -> None:
    """GB200: 165.93 W of the GPU, 467.68 W of the module, in two scopes of one field."""
    channels = channels_of(FakeNvml(fields={(186, 0): 165_930, (186, 1): 467_680}))
    assert channels["power"].values[-1] == 165.93


def test_power_of_the_moment_is_taken_where_the_mean_is_not_offered() -> None:
    """A100 with driver 570: average N/A, instantaneous 49.68 W."""
    channels = channels_of(FakeNvml(fields={(186, 0): 49_680}, nvmlDeviceGetPowerUsage=refuse(3)))
    assert (channels["power"].unit, channels["power"].values[-1]) == ("W", 49.68)


def test_a_mean_in_its_place_says_that_it_is_one() -> None:
    """H100 with a driver that has no such field: what is left is a mean of a second."""
    channels = channels_of(FakeNvml(fields={}))
    assert (channels["power"].unit, channels["power"].values[-1]) == (MEAN_OF_A_SECOND, 627.32)


@pytest.mark.parametrize("capability", [(6, 0), (7, 0), (8, 0)])
def test_the_usual_reading_of_old_chips_is_of_the_moment(capability: tuple[int, int]) -> None:
    """P100, V100 and A100 have no mean."""
    channels = channels_of(FakeNvml(fields={}, nvmlDeviceGetCudaComputeCapability=lambda _handle: capability))
    assert channels["power"].unit == "W"


def test_a_gpu_whose_capability_is_not_told_may_give_a_mean() -> None:
    assert channels_of(FakeNvml(fields={}, without=("nvmlDeviceGetCudaComputeCapability",)))["power"].unit == MEAN_OF_A_SECOND


def test_pcie_traffic_from_its_counters_needs_no_call_that_blocks() -> None:
    library = FakeNvml()
    device = device_of(library)
    library.fields[197, 0] = 5_000_000_000
    assert device.pcie_total_bytes("tx") == 5e9  # wider than 32 bits: the value's type says which member holds it
    channels_of(library)
    assert "nvmlDeviceGetPcieThroughput" not in [name for name, _ in library.calls]


def test_pcie_traffic_without_counters_is_watched() -> None:
    channels = channels_of(FakeNvml(fields={(186, 0): 1}))
    assert (channels["pcie_tx"].unit, channels["pcie_tx"].values[-1]) == ("bytes/s", 3e6)
    assert channels["pcie_rx"].values[-1] == 7e6


def test_a_mig_instance_has_the_gpus_clocks_and_no_power_of_its_own() -> None:
    library = FakeNvml(mig=True)
    channels = channels_of(library)
    for name in ("power", "energy", "pcie_tx", "pcie_rx"):
        assert channels[name].unavailable == NOT_A_PART, name
    assert channels["sm_clock"].values[-1] == 1755e6
    assert channels["temperature"].values
    assert channels["memory_used"].values
    asked = {name: handle for name, handle in library.calls if name != "nvmlDeviceGetFieldValues"}
    assert asked["nvmlDeviceGetClockInfo"] == asked["nvmlDeviceGetViolationStatus"] == BOARD
    assert asked["nvmlDeviceGetMemoryInfo"] != BOARD
    facts = device_of(library).facts()
    assert facts["power_limit_w"].reason == NOT_A_PART
    assert facts["mig_mode"].value == "on"


def test_a_gpu_without_memory_of_its_own_is_no_gpu_that_uses_none() -> None:
    """GB10: nvidia-smi says [N/A] where others have memory; what its processes hold is known, and is labelled."""
    row = next(csv.reader([(DATA / "gb10_query.csv").read_text()], skipinitialspace=True))
    assert row[0] == "NVIDIA GB10"
    assert "[N/A]" in row  # memory.total and memory.used among them
    shared = FakeNvml(nvmlDeviceGetMemoryInfo=refuse(3))
    shared.pids = [SimpleNamespace(pid=1, usedGpuMemory=84 << 20), SimpleNamespace(pid=2, usedGpuMemory=16 << 20)]
    used = channels_of(shared)["memory_used"]
    assert (used.unit, used.values[-1]) == (OF_PROCESSES, float(100 << 20))
    shared.pids[1].usedGpuMemory = None
    assert "Not Supported" in channels_of(shared)["memory_used"].unavailable


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (3, "Not Supported"),
        (4, "Insufficient Permissions"),
        (15, "GPU is lost"),
        (26, "Requested functionality has been deprecated"),
    ],
)
def test_what_a_driver_refuses_is_unavailable_with_its_reason(number: int, said: str) -> None:
    functions = {
        "temperature": "nvmlDeviceGetTemperature",
        "sm_clock": "nvmlDeviceGetClockInfo",
        "throttle": "nvmlDeviceGetCurrentClocksThrottleReasons",
        "violation.app_clocks": "nvmlDeviceGetViolationStatus",
        "energy": "nvmlDeviceGetTotalEnergyConsumption",
    }
    channels = channels_of(FakeNvml(**{function: refuse(number) for function in functions.values()}))
    for name, function in functions.items():
        assert channels[name].unavailable == f"{function}: {said}", name
    assert "throttle.hw_thermal" not in channels


def test_an_older_package_lacks_functions_and_fields() -> None:
    channels = channels_of(FakeNvml(without=("nvmlDeviceGetViolationStatus", "nvmlDeviceIsMigDeviceHandle"), fields={}))
    assert channels["violation.power"].unavailable == "this version of nvidia-ml-py has no nvmlDeviceGetViolationStatus"
    assert channels["memory_temperature"].unavailable == "NVML field 82: Not Supported"


def test_a_vgpu_without_sensors_says_so_of_each() -> None:
    """GRID V100D-8C: temperature and power N/A."""
    names = ("nvmlDeviceGetPowerUsage", "nvmlDeviceGetTemperature", "nvmlDeviceGetTotalEnergyConsumption")
    channels = channels_of(FakeNvml(fields={}, **dict.fromkeys(names, refuse(3))))
    assert channels["power"].unavailable == "NVML field 186: Not Supported; nvmlDeviceGetPowerUsage: Not Supported"
    assert "Not Supported" in channels["temperature"].unavailable
    assert "Not Supported" in channels["energy"].unavailable


def test_a_gpu_that_falls_off_the_bus_leaves_a_gap() -> None:
    """A loop whose first sample is good and whose others are errors: unknown, never the last value again."""
    rows = [line.split(", ") for line in (DATA / "loop_unknown_error.csv").read_text().splitlines()]
    answers = iter(rows)

    def clock(_handle: Any, _kind: Any) -> int:
        cell = next(answers, ["[Unknown Error]"])[0]
        if not cell.isdigit():
            raise NVMLError(999)
        return int(cell)

    library = FakeNvml(nvmlDeviceGetClockInfo=clock)
    telemetry = nvml_telemetry(device_of(library), period_s=0.001)
    channels = window(telemetry, lambda: next(answers, None) is None)
    assert channels["sm_clock"] == Channel("Hz", (), (), "nvmlDeviceGetClockInfo: Unknown Error")


def test_no_library_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert load_nvml().reason == "NVML is not readable: the package nvidia-ml-py is not installed"
    monkeypatch.setitem(sys.modules, "pynvml", SimpleNamespace(NVMLError=NVMLError, nvmlInit=refuse(4)))
    assert load_nvml().reason == "NVML is not readable: Insufficient Permissions"


def test_devices_are_found_by_uuid_else_by_bus() -> None:
    library = FakeNvml()
    assert NvmlDevice.find(library, DeviceAddress("other", "00000000:1b:00.0")) is not None
    assert NvmlDevice.find(library, DeviceAddress("other", None)) is None


def test_settings_are_measured_or_say_why_not() -> None:
    facts = device_of(FakeNvml()).facts()
    assert facts["driver"].value == "580.01"
    assert facts["mig_mode"].value == "on"
    assert facts["max_sm_clock_hz"].value == 1980e6
    assert facts["power_limit_w"].value == 700.0
    assert facts["vbios"].status == "unavailable"
    assert "nvmlDeviceGetVbiosVersion" in facts["vbios"].reason


def test_processes_of_others_are_counted_and_those_of_the_run_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backends.telemetry.others.run_family", lambda: frozenset({os.getpid(), 41}))
    library = FakeNvml()
    device = device_of(library)

    def counted(*pids: int) -> int | None:
        library.pids = [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in pids]
        return count_others(device.process_ids)

    assert counted(os.getpid(), 41) == 0
    assert counted(os.getpid(), 41, 42, 43) == 2
    assert counted(42, 43) is None  # numbers of another namespace
    assert counted() is None
    library.nvmlDeviceGetComputeRunningProcesses = refuse(4)
    assert count_others(device.process_ids) is None
    with pytest.raises(ReadingLost):
        device.process_ids()
