"""AMD SMI: clocks die by die, power of the moment, counters of the firmware; and every way in which it says nothing."""

import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backends.telemetry.amd import MEAN, amdsmi_telemetry
from backends.telemetry.amdsmi import NOT_A_PART, AmdsmiDevice, load_amdsmi
from backends.telemetry.gauges import ReadingLost, Shared
from backends.telemetry.limits import ActiveLimits, HeldDown
from backends.telemetry.others import count_others
from suite.backend import Channel
from suite.telemetry import UNITS
from tests.backends.fake_amdsmi import (
    BUS,
    NO_PERM,
    NOT_SUPPORTED,
    AmdSmiException,
    AmdSmiLibraryException,
    FakeAmdsmi,
    device_of,
)
from tests.backends.windows import Ticking, answered, answered_again, window

DATA = Path(__file__).parent.parent / "data" / "amd"
ENERGY, TABLE = "amdsmi_get_energy_count", "amdsmi_get_gpu_metrics_info"

SLOW = re.compile("temperature|memory_used")


def channels_of(library: FakeAmdsmi, **options: Any) -> dict[str, Channel]:
    """One window of at least three looks at the table, unless it is refused, and of two at whatever can be read."""
    telemetry = amdsmi_telemetry(device_of(library, **options), period_s=0.003)
    looks = 0 if TABLE in library.refused else library.table_reads + 3
    by_another = [name for name in telemetry._gauges if TABLE in library.refused or SLOW.search(name)]
    read, read_again = answered(telemetry, *by_another), answered_again(telemetry)
    return dict(window(telemetry, lambda: library.table_reads >= looks and read() and read_again()))


def test_channels_in_units() -> None:
    channels = channels_of(FakeAmdsmi())
    assert set(UNITS) <= set(channels)
    readings = {name: (channels[name].unit, channels[name].values[-1]) for name in UNITS if channels[name].values}
    assert readings == {
        "sm_clock": ("Hz", 2102e6),
        "sm_clock_spread": ("Hz", 7e6),
        "memory_clock": ("Hz", 1230e6),
        "power": ("W", 234.0),
        "hotspot_temperature": ("C", 61.0),
        "memory_temperature": ("C", 58.0),
        "memory_used": ("bytes", float(49_148 << 20)),
    }
    assert channels["temperature"].unavailable == "temperature_edge is not offered: the driver's table says N/A"
    assert "under the 2 s" in channels["energy"].unavailable
    assert "both directions" in channels["pcie_tx"].unavailable


def test_one_look_at_the_table_serves_all_gauges_of_a_round() -> None:
    library = FakeAmdsmi()
    device = device_of(library)
    device._table = Shared(device._read_table, clock_s=Ticking())
    device.sm_clock_hz()
    device.sm_clock_spread_hz()
    device.power_w()
    device.residency("prochot")
    assert library.table_reads == 1


def test_clocks_are_taken_as_read_even_beyond_the_range_that_the_driver_names() -> None:
    """MI300X: 2107 MHz of 2102; a Radeon at rest: 14 MHz of 54 at least."""
    said = (DATA / "amd_smi_metric_mi300x_head.txt").read_text()
    clocks = [int(mhz) for mhz in re.findall(r"\bCLK: (\d+) MHz", said)]
    assert clocks == [2102, 2101, 2107]
    device = device_of(FakeAmdsmi(table={"current_gfxclks": [*clocks, *["N/A"] * 5]}))
    assert device.sm_clock_hz() == pytest.approx(sum(clocks) / 3 * 1e6)
    assert device.sm_clock_spread_hz() == 6e6
    idle = re.search(r"\bCLK: (\d+) MHz", (DATA / "amd_smi_metric_wrapped_list.txt").read_text())
    assert idle is not None
    assert device_of(FakeAmdsmi(table={"current_gfxclks": [int(idle.group(1))]})).sm_clock_hz() == 14e6


@pytest.mark.parametrize("nothing", ["N/A", 65535, 4294967295, 0])
def test_a_die_without_a_clock_does_not_count(nothing: Any) -> None:
    """MI300A has six dies of eight; releases before 6.3 give the table's all ones."""
    device = device_of(FakeAmdsmi(table={"current_gfxclks": [2000, 2100, nothing, nothing]}))
    assert device.xcd_clocks_hz() == [2000e6, 2100e6]


def test_a_partition_has_the_clocks_of_its_own_dies_and_no_power_of_its_own() -> None:
    library = FakeAmdsmi()
    channels = channels_of(library, part="CPX", xcds=[2])
    assert channels["sm_clock"].values[-1] == 2107e6
    assert channels["sm_clock_spread"].values[-1] == 0.0
    assert channels["power"].unavailable == channels["energy"].unavailable == f"{NOT_A_PART} (CPX)"


def test_a_table_with_one_clock_gives_that_one() -> None:
    """Chips of one die, and releases before 6.1."""
    library = FakeAmdsmi()
    del library.table["current_gfxclks"]
    assert device_of(library).xcd_clocks_hz() == [2102e6]


def test_a_mean_of_power_says_that_it_is_one() -> None:
    """Before MI300 the table has a mean alone: its key in tools is average_socket_power."""
    text = (DATA / "amd_smi_metric_warning_before_json.txt").read_text()
    gpus = {gpu["gpu"]: gpu for gpu in json.loads(text[text.index("[") :])}
    average = gpus[0]["power"]["average_socket_power"]["value"]
    assert gpus[0]["temperature"]["hotspot"] == "N/A"
    library = FakeAmdsmi(
        table={
            "current_socket_power": "N/A",
            "average_socket_power": average,
            "temperature_edge": 30,
            "temperature_hotspot": "N/A",
        }
    )
    channels = channels_of(library)
    assert (channels["power"].unit, channels["power"].values[-1]) == (MEAN, 90.0)
    assert channels["temperature"].values[-1] == 30.0
    assert "N/A" in channels["hotspot_temperature"].unavailable


def test_the_second_die_of_a_package_is_not_one_that_uses_nothing() -> None:
    """MI250: "N/A (Secondary die)"; its power is in the first die's."""
    said = (DATA / "rocm_smi_power_secondary_die.txt").read_text()
    assert "N/A (Secondary die)" in said
    channels = channels_of(FakeAmdsmi(table={"current_socket_power": "N/A", "average_socket_power": "N/A"}))
    assert channels["power"].unavailable == "current_socket_power is not offered: the driver's table says N/A"


def test_a_virtual_function_that_shows_its_power_has_it() -> None:
    said = (DATA / "rocm_smi_mi300x_vf_single.txt").read_text()
    watts, clock = re.search(r"([\d.]+)W  ", said), re.search(r"(\d+)Mhz", said)
    assert watts is not None
    assert clock is not None
    table = {"current_socket_power": int(float(watts.group(1))), "current_gfxclks": [int(clock.group(1))]}
    channels = channels_of(FakeAmdsmi(table=table, refused={ENERGY: NOT_SUPPORTED}, mode="GUEST"))
    assert channels["power"].values[-1] == 191.0
    assert channels["sm_clock"].values[-1] == 2105e6
    assert channels["energy"].unavailable == f"{ENERGY}: {NOT_SUPPORTED} (a virtual function in a guest)"


def test_a_guest_that_is_shown_nothing_says_why_of_each() -> None:
    channels = channels_of(FakeAmdsmi(refused={TABLE: NOT_SUPPORTED, ENERGY: NOT_SUPPORTED}, mode="GUEST"))
    for name in ("sm_clock", "power", "throttle", "hotspot_temperature", "violation.prochot"):
        assert channels[name].unavailable == f"{TABLE}: {NOT_SUPPORTED} (a virtual function in a guest)", name


def test_a_user_without_permission_is_told_the_remedy() -> None:
    """ROCm/amdsmi#114: outside the render group."""
    channels = channels_of(FakeAmdsmi(refused={TABLE: NO_PERM, ENERGY: NO_PERM}))
    assert channels["power"].unavailable == f"{TABLE}: {NO_PERM}; add the user to the groups render and video"


def test_an_accumulator_of_zero_is_no_energy() -> None:
    """A laptop's table holds energy_accumulator 0 for ever."""
    said = re.search(r"energy_accumulator \(15.259uJ \(2\^-16\)\): (\d+)", (DATA / "rocm_smi_showmetrics.txt").read_text())
    assert said is not None
    library = FakeAmdsmi()
    library.count["energy_accumulator"] = int(said.group(1))
    telemetry = amdsmi_telemetry(device_of(library), period_s=0.001)
    trace = telemetry._meters["energy"]
    assert trace.read_j() == 0.0
    window(telemetry, lambda: library.table_reads > 4)
    assert telemetry._traces["energy"].channel(2.5).unavailable == "the energy counter did not move in the window of 2.5 s"


def test_energy_is_the_accumulator_times_its_resolution() -> None:
    library = FakeAmdsmi()
    device = device_of(library)
    assert device.energy_j() == pytest.approx(76.5)
    assert device.energy_wrap_j() == pytest.approx(2**32 * 15.3e-6)
    library.count = {"power": 6_000_000_000, "counter_resolution": 15.3, "timestamp": 1}  # releases before 6.3
    assert device.energy_j() == pytest.approx(91_800.0)
    assert device.energy_wrap_j() is None  # it has more than 32 bits
    library.count["power"] = 2**64 - 1
    with pytest.raises(ReadingLost, match="not offered"):
        device.energy_j()


def test_limits_that_were_active_are_named_and_timed() -> None:
    """What amdsmi_get_violation_status gives in percent: active samples of all samples."""
    library = FakeAmdsmi()
    reads = library.amdsmi_get_gpu_metrics_info

    def grows(handle: str) -> dict[str, Any]:
        library.table["accumulation_counter"] += 10
        library.table["ppt_residency_acc"] += 4
        return reads(handle)

    library.amdsmi_get_gpu_metrics_info = grows
    channels = channels_of(library)
    assert channels["throttle"].values[-1] == 1.0
    assert channels["throttle.sw_power_cap"].values[-1] == 1.0
    assert channels["throttle.socket_thermal"].values[-1] == 0.0
    held = channels["violation.sw_power_cap"]
    assert held.unit == "s"
    assert held.values[0] == 0.0 < held.values[-1]
    assert channels["violation.socket_thermal"].values[-1] == 0.0
    assert "N/A" in channels["violation.hbm_thermal"].unavailable
    assert "gfx_below_host_limit_ppt_acc" in channels["violation.xcd_power"].unavailable


def test_a_mask_needs_a_sample_since_the_last_reading() -> None:
    counts = {"sw_power_cap": (100.0, 1000.0), "prochot": (0.0, 1000.0)}

    def residency(name: str) -> tuple[float, float]:
        if name not in counts:
            raise ReadingLost("not in this table")
        return counts[name]

    limits = ActiveLimits(residency)
    assert limits.read() is None
    assert limits.read() is None  # the firmware has not sampled since
    counts.update(sw_power_cap=(110.0, 1010.0), prochot=(0.0, 1010.0))
    assert limits.read() == 1.0
    counts.update(sw_power_cap=(110.0, 1020.0), prochot=(1.0, 1020.0))
    assert limits.read() == 2.0
    limits.begin()
    assert limits.read() is None
    counts.clear()
    with pytest.raises(ReadingLost, match="not in this table"):
        limits.read()


def test_time_under_a_limit_is_its_share_of_the_samples() -> None:
    clock = Ticking()
    counts = [(100.0, 1000.0)]
    held = HeldDown(lambda: counts[0], clock)
    assert held.read() == 0.0
    clock.now_s = 4.0
    counts[0] = (125.0, 1100.0)
    assert held.read() == pytest.approx(1.0)
    counts[0] = (0.0, 10.0)
    with pytest.raises(ReadingLost, match="reset"):
        held.read()


def test_dies_are_averaged() -> None:
    """Table version 1.8 counts each die of each partition; the ones that are not there hold all ones."""
    rows = [[10, 30, 2**64 - 1], ["N/A", "N/A", "N/A"]]
    device = device_of(FakeAmdsmi(table={"xcp_stats.gfx_below_host_limit_ppt_acc": rows}))
    assert device.residency("xcd_power") == (20.0, 1000.0)


def test_other_processes_by_both_forms_of_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backends.telemetry.others.run_family", lambda: frozenset({os.getpid()}))
    library = FakeAmdsmi()
    device = device_of(library)
    library.processes = [{"pid": os.getpid()}, {"pid": 4}]
    assert count_others(device.process_ids) == 1
    library.processes = [SimpleNamespace(pid=os.getpid())]  # releases before 6.2
    assert count_others(device.process_ids) == 0
    library.refused["amdsmi_get_gpu_process_list"] = NO_PERM
    assert count_others(device.process_ids) is None


def test_an_older_package_lacks_functions() -> None:
    channels = channels_of(FakeAmdsmi(without=(ENERGY, "amdsmi_get_gpu_memory_usage", "amdsmi_get_gpu_virtualization_mode")))
    assert channels["energy"].unavailable == f"this version of amdsmi has no {ENERGY}"
    assert channels["memory_used"].unavailable == "this version of amdsmi has no amdsmi_get_gpu_memory_usage"


def test_devices_are_found_by_bus_however_wide_its_domain_is_written() -> None:
    assert AmdsmiDevice.find(FakeAmdsmi(), "00000000:c1:00.0") is not None
    assert AmdsmiDevice.find(FakeAmdsmi(), "0000:c2:00.0") is None
    assert AmdsmiDevice.find(FakeAmdsmi(refused={"amdsmi_get_processor_handles": NO_PERM}), BUS) is None


def test_settings_are_measured_or_say_why_not() -> None:
    facts = device_of(FakeAmdsmi()).facts()
    assert facts["driver"].value == "6.10.5"
    assert facts["power_limit_w"].value == pytest.approx(750.0)
    assert facts["compute_partition"].value == "SPX"
    assert facts["virtualization"].value == "baremetal"
    assert facts["max_sm_clock_hz"].value == 2102e6
    assert facts["pcie_width"].value == 16
    assert facts["vbios"].reason == "amdsmi_get_gpu_vbios_info: the driver gives no version"


def test_no_library_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    assert "its Python package amdsmi does not load" in load_amdsmi().reason

    def refuses() -> None:
        raise AmdSmiLibraryException("AMDSMI_STATUS_DRIVER_NOT_LOADED - Driver not loaded")

    monkeypatch.setitem(sys.modules, "amdsmi", SimpleNamespace(AmdSmiException=AmdSmiException, amdsmi_init=refuses))
    assert load_amdsmi().reason == "AMD SMI is not readable: AMDSMI_STATUS_DRIVER_NOT_LOADED - Driver not loaded"


def test_a_package_that_falls_over_its_missing_library_is_no_crash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Release 7.0.2 prints that libamd_smi.so is missing, and then raises KeyError for it."""
    (tmp_path / "amdsmi.py").write_text("raise KeyError('libamd_smi.so')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "amdsmi", raising=False)
    assert "libamd_smi.so" in load_amdsmi().reason


class WithACard(FakeAmdsmi):
    """A list of processors that holds one which cannot say its bus id, before the GPU that is looked for (ROCm/cvs 375)."""

    def amdsmi_get_processor_handles(self) -> list[str]:
        return ["a network card", "the device"]

    def amdsmi_get_gpu_device_bdf(self, handle: str) -> str:
        if handle == "a network card":
            raise AmdSmiLibraryException(NOT_SUPPORTED)
        return super().amdsmi_get_gpu_device_bdf(handle)


def test_a_handle_that_is_no_gpu_is_passed_over() -> None:
    found = AmdsmiDevice.find(WithACard(), BUS)
    assert found is not None
    assert found.power_w() == 234.0


@pytest.mark.parametrize("nothing", [None, "N/A"])
def test_a_function_that_tells_nothing_loses_its_readings_alone(monkeypatch: pytest.MonkeyPatch, nothing: Any) -> None:
    library = FakeAmdsmi()
    told: dict[str, Any] = {
        **dict.fromkeys((TABLE, ENERGY, "amdsmi_get_gpu_memory_usage", "amdsmi_get_gpu_driver_info"), nothing),
        "amdsmi_get_gpu_virtualization_mode": {"mode": nothing},
        "amdsmi_get_gpu_process_list": [{"pid": nothing}],
    }
    for function, said in told.items():
        monkeypatch.setattr(library, function, lambda *_arguments, said=said: said)
    device = device_of(library)
    for read in (
        device.sm_clock_hz,
        device.energy_j,
        device.memory_used_bytes,
        device.driver,
        device.virtualization,
        device.process_ids,
    ):
        with pytest.raises(ReadingLost, match="the driver gives no"):
            read()
    assert device.compute_partition() == "SPX"


def test_another_device_without_an_address_hides_none(monkeypatch: pytest.MonkeyPatch) -> None:
    library = FakeAmdsmi()
    monkeypatch.setattr(library, "amdsmi_get_gpu_device_bdf", {"another": "N/A", "the device": BUS}.__getitem__)
    assert AmdsmiDevice.find(library, BUS) is not None
