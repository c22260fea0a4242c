"""NVML with the readings that nvidia-smi printed of real GPUs: what telemetry makes of each is the print's own value."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from backends.telemetry.gauges import ReadingLost
from backends.telemetry.nvidia import MEAN_OF_A_SECOND, OF_PROCESSES, WITH_RESERVED, nvml_telemetry
from suite.backend import Channel
from tests.backends.fake_nvml import FakeNvml, device_of, refuse
from tests.backends.windows import answered, window
from tests.hardware.nvidia_smi import Entry, columns, number, plain, value, values, xml

NOT_SUPPORTED = 3
MIB = 2**20


class Readings(NamedTuple):
    """What one print says; ``None`` for what it has not: watts of the GPU (mean, moment and limit), MHz, MiB and degrees.

    ``module_w`` is the moment's power of the module that the GPU is on; ``process_mib`` is what each process holds.
    """

    average_w: float | None = None
    instant_w: float | None = None
    limit_w: float | None = None
    module_w: float | None = None
    sm_mhz: float | None = None
    max_sm_mhz: float | None = None
    memory_mhz: float | None = None
    used_mib: float | None = None
    reserved_mib: float | None = None
    temperature_c: float | None = None
    memory_temperature_c: float | None = None
    capability: tuple[int, int] = (9, 0)
    process_mib: tuple[float, ...] = ()


def of_text(file: str, **more: Any) -> Readings:
    """``nvidia-smi -q``: a driver of 535 has one power draw, which is the mean."""
    gpu = plain(file).gpus[0]
    power = "GPU Power Readings"
    averages = values(gpu, power, "Average Power Draw") or values(gpu, power, "Power Draw")
    return Readings(
        number(averages[0]),
        _first(gpu, power, "Instantaneous Power Draw"),
        _first(gpu, power, "Current Power Limit"),
        _first(gpu, "Module Power Readings", "Instantaneous Power Draw"),
        _first(gpu, "Clocks", "SM"),
        _first(gpu, "Max Clocks", "SM"),
        _first(gpu, "Clocks", "Memory"),
        _first(gpu, "FB Memory Usage", "Used"),
        _first(gpu, "FB Memory Usage", "Reserved"),
        _first(gpu, "GPU Current Temp"),
        _first(gpu, "Memory Current Temp"),
        process_mib=tuple(float(number(each) or 0) for each in values(gpu, "Used GPU Memory")),
        **more,
    )


def of_xml(file: str, index: int = 0, **more: Any) -> Readings:
    """``nvidia-smi -q -x``; before the driver 535 there was one power draw and no section of the module's."""
    gpu = xml(file).gpus[index]
    power = "power_readings" if values(gpu, "power_readings", "power_draw") else "gpu_power_readings"
    averages = values(gpu, power, "average_power_draw") or values(gpu, power, "power_draw")
    return Readings(
        number(averages[0]),
        _first(gpu, power, "instant_power_draw"),
        _first(gpu, power, "current_power_limit") or _first(gpu, power, "power_limit"),
        _first(gpu, "module_power_readings", "instant_power_draw"),
        _first(gpu, "clocks", "sm_clock"),
        _first(gpu, "max_clocks", "sm_clock"),
        _first(gpu, "clocks", "mem_clock"),
        _first(gpu, "fb_memory_usage", "used"),
        _first(gpu, "fb_memory_usage", "reserved"),
        _first(gpu, "gpu_temp"),
        _first(gpu, "memory_temp"),
        **more,
    )


def of_query(file: str, **more: Any) -> Readings:
    """``--query-gpu`` of all fields."""
    said = columns(file)
    keys = (
        *("power.draw.average [W]", "power.draw.instant [W]", "enforced.power.limit [W]", "", "clocks.current.sm [MHz]"),
        *("clocks.max.sm [MHz]", "clocks.current.memory [MHz]", "memory.used [MiB]", "memory.reserved [MiB]"),
        *("temperature.gpu", "temperature.memory"),
    )
    return Readings(*(number(said[key]) if key else None for key in keys), **more)  # type: ignore[arg-type]


def replayed(readings: Readings, **more: Any) -> FakeNvml:
    """A library that answers with them and refuses what the print has not."""
    milliwatts = {(186, 0): readings.instant_w, (186, 1): readings.module_w}
    fields = {asked: round(watts * 1e3) for asked, watts in milliwatts.items() if watts is not None}
    if readings.memory_temperature_c is not None:
        fields[82, 0] = round(readings.memory_temperature_c)
    clocks = {FakeNvml.NVML_CLOCK_SM: readings.sm_mhz, FakeNvml.NVML_CLOCK_MEM: readings.memory_mhz}
    library = FakeNvml(
        fields=fields,
        nvmlDeviceGetPowerUsage=_answer(readings.average_w, 1e3),
        nvmlDeviceGetEnforcedPowerLimit=_answer(readings.limit_w, 1e3),
        nvmlDeviceGetClockInfo=lambda _handle, kind: _answer(clocks[kind])(),
        nvmlDeviceGetMaxClockInfo=_answer(readings.max_sm_mhz),
        nvmlDeviceGetTemperature=_answer(readings.temperature_c),
        nvmlDeviceGetMemoryInfo=partial(_memory_info, readings),
        nvmlDeviceGetCudaComputeCapability=lambda _handle: readings.capability,
        **more,
    )
    library.pids = [SimpleNamespace(pid=1, usedGpuMemory=round(mib * MIB)) for mib in readings.process_mib]
    return library


def power_of(library: FakeNvml) -> Channel:
    """The channel over a window in which power was read."""
    telemetry = nvml_telemetry(device_of(library), period_s=0.001)
    return window(telemetry, answered(telemetry, "power"))["power"]


def told(read: Callable[[], float]) -> float | None:
    try:
        return read()
    except ReadingLost:
        return None


def _memory_info(readings: Readings, _handle: Any, version: int | None = None) -> Any:
    """The second version of the call tells what is reserved apart; the first has it in what is used."""
    used = _answer(readings.used_mib, MIB)()
    return SimpleNamespace(used=used if version else used + round((readings.reserved_mib or 0) * MIB))


def _answer(reading: float | None, scale: float = 1.0) -> Callable[..., Any]:
    return refuse(NOT_SUPPORTED) if reading is None else lambda *_: round(reading * scale)


def _first(gpu: list[Entry], *keys: str) -> float | None:
    found = values(gpu, *keys)
    return number(found[0]) if found else None


REAL = {
    "h200_q_load.txt": (of_text("h200_q_load.txt"), 625.24, "W", 700, 1980),
    "l40s_q_load.txt": (of_text("l40s_q_load.txt", capability=(8, 9)), 110.01, "W", 350, 2520),
    "q_a10.txt": (of_text("q_a10.txt", capability=(8, 6)), 43.89, MEAN_OF_A_SECOND, 150, 1695),
    "q_h100_8gpu.txt": (of_text("q_h100_8gpu.txt"), 67.74, MEAN_OF_A_SECOND, 700, 1980),
    "h100_mig_q_idle.txt": (of_text("h100_mig_q_idle.txt"), 72.63, "W", 700, 1980),
    "qx_a100_40gb.xml": (of_xml("qx_a100_40gb.xml", capability=(8, 0)), 49.68, "W", 400, 1410),
    "qx_a100_80gb_mig_four_1slice.xml": (of_xml("qx_a100_80gb_mig_four_1slice.xml", capability=(8, 0)), 67.03, "W", 500, 1410),
    "qx_h100_first2of8.xml": (of_xml("qx_h100_first2of8.xml"), 68.92, "W", 700, 1980),
    "qx_l40s.xml": (of_xml("qx_l40s.xml", capability=(8, 9)), 66.16, "W", 350, 2520),
    "qx_gb200_4gpu.xml": (of_xml("qx_gb200_4gpu.xml", capability=(10, 0)), 165.93, "W", 1200, 2062),
    "qx_p100.xml": (of_xml("qx_p100.xml", capability=(6, 0)), 26.16, "W", 250, 1328),
    "h200_query_gpu_idle.csv": (of_query("h200_query_gpu_idle.csv"), 78.21, "W", 700, 1980),
    "h100_query_gpu_load.csv": (of_query("h100_query_gpu_load.csv"), 625.68, "W", 700, 1980),
    "h100_mig_query_gpu_load.csv": (of_query("h100_mig_query_gpu_load.csv"), 447.35, "W", 700, 1980),
    "l40s_query_gpu_not_idle.csv": (of_query("l40s_query_gpu_not_idle.csv", capability=(8, 9)), 127.67, "W", 350, 2520),
}


@pytest.mark.parametrize(("readings", "power_w", "unit", "limit_w", "max_sm_mhz"), REAL.values(), ids=REAL)
def test_power_is_the_moment_s_of_the_gpu_and_else_says_that_it_is_a_mean(
    readings: Readings, power_w: float, unit: str, limit_w: float, max_sm_mhz: float
) -> None:
    library = replayed(readings)
    channel, device = power_of(library), device_of(library)
    assert channel.unit == unit
    assert channel.values[-1] == pytest.approx(power_w)
    assert (device.power_limit_w(), device.max_sm_clock_hz()) == (limit_w, max_sm_mhz * 1e6)


@pytest.mark.parametrize(
    ("readings", "average_w"),
    [
        (of_text("h200_q_load.txt"), 627.32),
        (of_text("l40s_q_load.txt"), 110.24),
        (of_xml("qx_h100_first2of8.xml"), 68.57),
        (of_xml("qx_l40s.xml"), 65.64),
        (of_xml("qx_a100_40gb.xml"), None),
        (of_query("h200_query_gpu_idle.csv"), 77.71),
        (of_query("h100_query_gpu_load.csv"), 631.95),
    ],
)
def test_the_usual_reading_is_the_mean_beside_it(readings: Readings, average_w: float | None) -> None:
    assert told(device_of(replayed(readings)).usual_power_w) == average_w


def test_the_module_s_power_and_limit_are_not_the_gpu_s() -> None:
    """GB200: 467.68 W and 2,500 W of the module, which is another scope of the same field."""
    readings = of_xml("qx_gb200_4gpu.xml")
    assert readings.module_w == 467.68
    assert value(xml("qx_gb200_4gpu.xml").gpus[0], "module_power_readings", "current_power_limit") == "2500.00 W"
    only_the_module_s = replayed(readings._replace(instant_w=None, average_w=None))
    assert power_of(only_the_module_s).unavailable.startswith("NVML field 186: Not Supported")


@pytest.mark.parametrize(
    ("readings", "used_mib", "sm_mhz", "temperature_c", "memory_temperature_c"),
    [
        (of_text("h200_q_load.txt"), 32_362, 1980, 52, 41),
        (of_query("h100_query_gpu_load.csv"), 19_818, 1980, 59, 54),
        (of_query("h200_query_gpu_idle.csv"), 0, 345, 28, 32),
        (of_query("l40s_query_gpu_not_idle.csv"), 0, 2520, 63, None),
        (of_text("l40s_q_load.txt"), 1235, 2520, None, None),
        (of_xml("qx_l40s.xml"), None, None, None, None),
    ],
)
def test_memory_clock_and_temperatures(
    readings: Readings,
    used_mib: float | None,
    sm_mhz: float | None,
    temperature_c: float | None,
    memory_temperature_c: float | None,
) -> None:
    """``None`` where no value is looked for; a memory's temperature that the print has not is lost, not 0."""
    device = device_of(replayed(readings))
    assert told(device.memory_temperature_c) == memory_temperature_c
    for read, expected in (
        (device.memory_used_bytes, None if used_mib is None else used_mib * MIB),
        (device.sm_clock_hz, None if sm_mhz is None else sm_mhz * 1e6),
        (device.temperature_c, temperature_c),
    ):
        assert expected is None or read() == expected


@pytest.mark.parametrize(("file", "mib"), [("h200_q_load.txt", 2566 + 1542 + 28_234), ("l40s_q_load.txt", 538 + 681)])
def test_what_processes_hold_is_their_sum(file: str, mib: int) -> None:
    assert device_of(replayed(of_text(file))).processes_used_bytes() == mib * MIB


def test_an_instance_gets_none_of_the_whole_gpu_s_power() -> None:
    """Of a GPU that is divided the driver tells 447.35 W, whoever of its instances used them."""
    library = replayed(of_query("h100_mig_query_gpu_load.csv"), mig=True)
    device = device_of(library)
    assert told(device.power_w) is told(device.usual_power_w) is told(device.power_limit_w) is None
    assert device.sm_clock_hz() == 1980e6


def test_a_gpu_of_shared_memory_has_what_its_processes_hold() -> None:
    """GB10: 84 MiB of one process, in a table whose memory is Not Supported."""
    library = replayed(Readings(process_mib=(84,), capability=(12, 1)))
    telemetry = nvml_telemetry(device_of(library), period_s=0.001)
    used = window(telemetry, answered(telemetry, "memory_used"))["memory_used"]
    assert (used.unit, used.values[-1]) == (OF_PROCESSES, 84.0 * MIB)


@pytest.mark.parametrize(("without", "unit", "mib"), [((), "bytes", 0), (("nvmlMemory_v2",), WITH_RESERVED, 614)])
def test_memory_that_is_taken_with_the_driver_s_own_says_so(without: tuple[str, ...], unit: str, mib: int) -> None:
    """An idle H200 uses 0 MiB; what the driver reserves is told together with it where nothing newer is offered."""
    library = replayed(of_query("h200_query_gpu_idle.csv"), without=without)
    telemetry = nvml_telemetry(device_of(library), period_s=0.001)
    used = window(telemetry, answered(telemetry, "memory_used"))["memory_used"]
    assert (used.unit, used.values[-1]) == (unit, mib * MIB)
