"""Telemetry: polled off the launching thread; what is not offered says why."""

import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backends.host.cpuinfo import Clock, Processors
from backends.telemetry.host import Rapl, cpu_telemetry
from backends.telemetry.nvml import DeviceAddress, NvmlDevice, nvml_telemetry, other_processes
from backends.telemetry.polled import EnergyMeter, Gauge, Missing, PolledTelemetry, ReadingLost
from suite.telemetry import UNITS, NoTelemetry

CHANNELS = set(UNITS)


NO_COUNTER = Missing("no counter")


def polled(
    gauges: dict[str, Gauge | Missing], *, energy: EnergyMeter | Missing = NO_COUNTER, period_s: float = 0.002
) -> PolledTelemetry:
    return PolledTelemetry(gauges, energy, lambda: 0, period_s)


def test_a_window_has_a_series_with_rising_times() -> None:
    counter = iter(range(10_000))
    telemetry = polled({"power": Gauge(lambda: float(next(counter)))})
    telemetry.start()
    time.sleep(0.05)
    channels = telemetry.stop()
    assert set(channels) == CHANNELS
    power = channels["power"]
    assert len(power.values) >= 3
    assert list(power.values) == sorted(power.values)
    assert list(power.times_s) == sorted(power.times_s)
    assert power.times_s[0] >= 0
    assert (power.unit, power.unavailable) == ("W", "")


def test_readings_are_taken_off_the_launching_thread() -> None:
    threads = set()

    def read() -> float:
        threads.add(threading.get_ident())
        return 1.0

    telemetry = polled({"power": Gauge(read)})
    telemetry.start()
    time.sleep(0.02)
    telemetry.stop()
    assert threads
    assert threading.get_ident() not in threads
    assert not any(thread.name == "telemetry" for thread in threading.enumerate())


def test_missing_and_lost_channels_say_why() -> None:
    def lost() -> float:
        raise ReadingLost("GPU is lost")

    telemetry = polled({"power": Gauge(lost), "throttle": Missing("not on this one")})
    telemetry.start()
    time.sleep(0.01)
    channels = telemetry.stop()
    assert channels["power"].unavailable == "GPU is lost"
    assert channels["throttle"].unavailable == "not on this one"
    assert channels["sm_clock"].unavailable == "not offered by this device"
    assert channels["energy"].unavailable == "no counter"
    assert telemetry.now("power") is None
    assert telemetry.now("sm_clock") is None


def test_a_gauge_that_fails_midway_is_a_failed_channel_not_its_last_value_repeated() -> None:
    readings = iter([5.0, 6.0])

    def read() -> float:
        try:
            return next(readings)
        except StopIteration:
            raise ReadingLost("Unknown Error") from None

    telemetry = polled({"power": Gauge(read)})
    telemetry.start()
    time.sleep(0.03)
    assert telemetry.stop()["power"] == ("W", (), (), "Unknown Error")


def test_now_gives_the_latest_and_works_outside_a_window() -> None:
    value = [1.0]
    telemetry = polled({"sm_clock": Gauge(lambda: value[0])})
    assert telemetry.now("sm_clock") == 1.0
    telemetry.start()
    time.sleep(0.01)
    value[0] = 2.0
    time.sleep(0.03)
    assert telemetry.now("sm_clock") == 2.0
    telemetry.stop()


def test_windows_do_not_mix() -> None:
    value = [1.0]
    telemetry = polled({"power": Gauge(lambda: value[0])})
    for expected in (1.0, 2.0):
        value[0] = expected
        telemetry.start()
        time.sleep(0.01)
        assert set(telemetry.stop()["power"].values) == {expected}


def test_energy_is_a_difference_and_needs_a_window_long_enough() -> None:
    total_j = iter([100.0, 130.0, 200.0, 260.0])
    fine = polled({}, energy=EnergyMeter(lambda: next(total_j), shortest_window_s=0.0))
    fine.start()
    energy = fine.stop()["energy"]
    assert energy.values == (0.0, 30.0)
    assert energy.times_s[0] == 0.0
    assert energy.times_s[1] > 0
    coarse = polled({}, energy=EnergyMeter(lambda: next(total_j), shortest_window_s=2.0))
    coarse.start()
    assert "under the 2 s" in coarse.stop()["energy"].unavailable


def test_no_telemetry_at_all_keeps_the_contract() -> None:
    telemetry = NoTelemetry("no library")
    telemetry.start()
    channels = telemetry.stop()
    assert set(channels) == CHANNELS
    assert {channel.unavailable for channel in channels.values()} == {"no library"}
    assert telemetry.now("power") is None
    assert telemetry.other_processes() is None


class FakeNvml:
    """The calls of ``pynvml`` that are used, with the values of an imagined device."""

    class NVMLError(Exception):
        pass

    NVML_SUCCESS, NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 0, 1, 2, 0

    def __init__(self, **overrides: Any) -> None:
        self.pids = [SimpleNamespace(pid=1)]
        self.field_status = 0
        for name, value in overrides.items():
            setattr(self, name, value)

    def nvmlDeviceGetHandleByUUID(self, uuid: Any) -> Any:  # noqa: N802
        if uuid != "GPU-abc":
            raise self.NVMLError("Not Found")
        return "handle"

    def nvmlDeviceGetHandleByPciBusId(self, bus: Any) -> Any:  # noqa: N802
        if bus != "00000000:1b:00.0":
            raise self.NVMLError("Not Found")
        return "by bus"

    def nvmlDeviceGetClockInfo(self, handle: Any, kind: Any) -> Any:  # noqa: N802
        return {self.NVML_CLOCK_SM: 1755, self.NVML_CLOCK_MEM: 3201}[kind]

    def nvmlDeviceGetMaxClockInfo(self, handle: Any, kind: Any) -> Any:  # noqa: N802
        return {self.NVML_CLOCK_SM: 1980, self.NVML_CLOCK_MEM: 3201}[kind]

    def nvmlDeviceGetFieldValues(self, handle: Any, fields: Any) -> Any:  # noqa: N802
        assert fields == [186]
        return [SimpleNamespace(nvmlReturn=self.field_status, value=SimpleNamespace(uiVal=691_000))]

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any) -> Any:  # noqa: N802
        raise self.NVMLError("Not Supported")

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: Any) -> Any:  # noqa: N802
        return 61

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any) -> Any:  # noqa: N802
        return 4

    def nvmlDeviceGetMemoryInfo(self, handle: Any) -> Any:  # noqa: N802
        return SimpleNamespace(used=1 << 30)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Any) -> Any:  # noqa: N802
        return self.pids

    def nvmlSystemGetDriverVersion(self) -> Any:  # noqa: N802
        return b"580.01"

    def nvmlDeviceGetMigMode(self, handle: Any) -> Any:  # noqa: N802
        return (1, 1)


def fake_device(**overrides: Any) -> NvmlDevice:
    found = NvmlDevice.find(FakeNvml(**overrides), DeviceAddress("abc", None))
    assert found is not None
    return found


def test_nvml_channels_in_units() -> None:
    telemetry = nvml_telemetry(fake_device(), period_s=0.002)
    telemetry.start()
    time.sleep(0.02)
    channels = telemetry.stop()
    latest = {name: channel.values[-1] for name, channel in channels.items() if channel.values}
    reasons = {name: latest.pop(name) for name in tuple(latest) if name.startswith("throttle.")}
    assert {name for name, held in reasons.items() if held} == {"throttle.sw_power_cap"}
    assert latest == {
        "sm_clock": 1755e6,
        "memory_clock": 3201e6,
        "power": 691.0,
        "temperature": 61.0,
        "throttle": 4.0,
        "memory_used": float(1 << 30),
    }
    assert "Not Supported" in channels["energy"].unavailable


def test_a_power_field_with_an_error_of_its_own_is_no_reading() -> None:
    with pytest.raises(ReadingLost, match="186"):
        fake_device(field_status=3).power_w()


def test_devices_are_found_by_uuid_else_by_bus() -> None:
    lookup = FakeNvml()
    by_bus = NvmlDevice.find(lookup, DeviceAddress("other", "00000000:1b:00.0"))
    assert by_bus is not None
    assert NvmlDevice.find(lookup, DeviceAddress("other", None)) is None


def test_settings_are_measured_or_say_why_not() -> None:
    facts = fake_device().facts()
    assert facts["driver"].value == "580.01"
    assert facts["mig_mode"].value == "on"
    assert facts["max_sm_clock_hz"].value == 1980e6
    assert facts["vbios"].status == "unavailable"
    assert "nvmlDeviceGetVbiosVersion" in facts["vbios"].reason


def test_processes_of_others_are_counted_and_those_of_the_run_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backends.telemetry.nvml.run_family", lambda: frozenset({os.getpid(), 41}))
    own = [SimpleNamespace(pid=pid) for pid in (os.getpid(), 41)]
    strangers = [SimpleNamespace(pid=pid) for pid in (42, 43)]
    assert other_processes(fake_device(pids=own)) == 0
    assert other_processes(fake_device(pids=own + strangers)) == 2
    assert other_processes(fake_device(pids=strangers)) is None  # numbers of another namespace
    assert other_processes(fake_device(pids=[])) is None


def cpu(root_guest: bool = False) -> Processors:
    return Processors("A CPU", "x86_64", (0, 1), 2, 1, None, (), root_guest, None, 0, Clock(None, ""))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with cpufreq, one RAPL package with its core plane, and a package sensor."""
    for index, khz in ((0, 3_000_000), (1, 2_000_000)):
        write(tmp_path / f"sys/devices/system/cpu/cpu{index}/cpufreq/scaling_cur_freq", f"{khz}\n")
    rapl = tmp_path / "sys/class/powercap"
    for zone, name, value in (("intel-rapl:0", "package-0", 999_000_000), ("intel-rapl:0:0", "core", 5)):
        write(rapl / zone / "name", name + "\n")
        write(rapl / zone / "energy_uj", f"{value}\n")
        write(rapl / zone / "max_energy_range_uj", "1000000000\n")
    write(tmp_path / "sys/class/thermal/thermal_zone0/type", "acpitz\n")
    write(tmp_path / "sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n")
    write(tmp_path / "sys/class/thermal/thermal_zone1/temp", "58000\n")
    write(tmp_path / "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n")
    write(tmp_path / "proc/stat", "cpu0 1 0 1 5 0 0 0 0 0 0\n")
    return tmp_path


def test_a_cpu_with_every_sensor(machine: Path) -> None:
    telemetry = cpu_telemetry(cpu(), 2, period_s=0.002, root=machine)
    telemetry.start()
    time.sleep(0.02)
    channels = telemetry.stop()
    assert channels["sm_clock"].values[0] == 2.5e9
    assert channels["temperature"].values[0] == 58.0
    assert channels["memory_used"].values[0] == 600 * 1024
    assert channels["power"].values[0] == 0.0  # the counter stands still
    assert channels["energy"].values == (0.0, 0.0)
    assert "memory clock" in channels["memory_clock"].unavailable


def test_an_energy_counter_that_wraps_goes_on(machine: Path) -> None:
    meter = Rapl([machine / "sys/class/powercap/intel-rapl:0"])
    assert meter.read_j() == 0.0
    write(machine / "sys/class/powercap/intel-rapl:0/energy_uj", "4000000\n")
    assert meter.read_j() == pytest.approx(5.0)
    write(machine / "sys/class/powercap/intel-rapl:0/energy_uj", "5000000\n")
    assert meter.read_j() == pytest.approx(6.0)


def test_a_bare_guest_says_what_it_lacks(tmp_path: Path) -> None:
    write(tmp_path / "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n")
    write(tmp_path / "proc/stat", "cpu0 1 0 1 5 0 0 0 0 0 0\n")
    telemetry = cpu_telemetry(cpu(root_guest=True), 2, period_s=0.002, root=tmp_path)
    telemetry.start()
    time.sleep(0.01)
    channels = telemetry.stop()
    assert "guest" in channels["sm_clock"].unavailable
    assert "RAPL" in channels["energy"].unavailable
    assert channels["power"].unavailable == channels["energy"].unavailable
    assert "thermal" in channels["temperature"].unavailable
    assert channels["memory_used"].values
