"""Telemetry of a CPU: what the kernel shows of this machine, and why not where it does not."""

import errno
from pathlib import Path

import pytest

from backends.host.cpuinfo import Clock, Processors
from backends.telemetry.energy import EnergyMeter
from backends.telemetry.gauges import Missing, ReadingLost
from backends.telemetry.host import cpu_telemetry
from backends.telemetry.rapl import Domain, Rapl, cpu_energy
from backends.telemetry.sysfs import number
from suite.backend import Channel
from suite.telemetry import UNITS
from tests.patience import until

POWERCAP = "sys/class/powercap"


def cpu(*, guest: bool = False) -> Processors:
    return Processors("A CPU", "x86_64", (0, 1), 2, 1, None, (), guest, None, 0, Clock(None, ""))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def zone(root: Path, name: str, label: str, microjoules: int, wraps_at: int = 1_000_000_000) -> Path:
    """One powercap zone, as the kernel lays it out."""
    path = root / POWERCAP / name
    write(path / "name", label + "\n")
    write(path / "energy_uj", f"{microjoules}\n")
    write(path / "max_energy_range_uj", f"{wraps_at}\n")
    return path / "energy_uj"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A machine that shows its memory and its load, and nothing else."""
    write(tmp_path / "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n")
    write(tmp_path / "proc/stat", "cpu0 1 0 1 5 0 0 0 0 0 0\n")
    return tmp_path


@pytest.fixture
def machine(bare: Path) -> Path:
    """A machine with cpufreq, one RAPL package with its parts, and a package sensor."""
    for index, khz in ((0, 3_000_000), (1, 2_000_000)):
        cpu_path = bare / f"sys/devices/system/cpu/cpu{index}"
        write(cpu_path / "cpufreq/scaling_cur_freq", f"{khz}\n")
        write(cpu_path / "topology/physical_package_id", "0\n")
        write(cpu_path / "thermal_throttle/package_throttle_total_time_ms", "5000\n")
    for name, label in (("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "core"), ("intel-rapl:0:1", "dram")):
        zone(bare, name, label, 5_000_000)
    zone(bare, "intel-rapl:1", "psys", 900_000_000)
    write(bare / "sys/class/thermal/thermal_zone0/type", "acpitz\n")
    write(bare / "sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n")
    write(bare / "sys/class/thermal/thermal_zone1/temp", "58000\n")
    return bare


def channels_of(root: Path, *, guest: bool = False) -> dict[str, Channel]:
    """One window in which every gauge was read once."""
    telemetry = cpu_telemetry(cpu(guest=guest), 2, period_s=0.001, root=root)
    telemetry.start()
    series = telemetry._series
    until(lambda: series["memory_used"].latest is not None)
    until(lambda: all(one.unavailable or one.latest is not None for one in series.values()))
    return dict(telemetry.stop())


def test_a_cpu_with_every_sensor(machine: Path) -> None:
    channels = channels_of(machine)
    assert set(UNITS) <= set(channels)
    readings = {name: channel.values[-1] for name, channel in channels.items() if channel.values}
    assert readings == {
        "sm_clock": 2.5e9,
        "sm_clock_spread": 1e9,
        "power": 0.0,  # the counter stands still
        "temperature": 58.0,
        "memory_used": 600 * 1024.0,
        "violation.thermal": 0.0,
    }
    assert "memory clock" in channels["memory_clock"].unavailable
    assert "energy.dram" in channels


def test_a_bare_guest_says_what_it_lacks(bare: Path) -> None:
    channels = channels_of(bare, guest=True)
    assert channels["sm_clock"].unavailable == "no clock reading: a guest sees only a nominal clock"
    assert channels["energy"].unavailable == "no RAPL energy counter: a guest is not shown its host's"
    assert channels["power"].unavailable == channels["energy"].unavailable
    assert channels["temperature"].unavailable == "no thermal zone or sensor of a CPU package"
    assert channels["violation.thermal"].unavailable == "the kernel counts no thermal events of this CPU"
    assert channels["memory_used"].values
    assert "energy.dram" not in channels


def test_amds_sensor_of_a_package(bare: Path) -> None:
    write(bare / "sys/class/hwmon/hwmon0/name", "nvme\n")
    write(bare / "sys/class/hwmon/hwmon0/temp1_input", "30000\n")
    write(bare / "sys/class/hwmon/hwmon1/name", "k10temp\n")
    write(bare / "sys/class/hwmon/hwmon1/temp1_input", "66125\n")
    assert channels_of(bare)["temperature"].values[-1] == 66.125


def joules(meter: EnergyMeter | Missing | None) -> float:
    assert isinstance(meter, EnergyMeter)
    return meter.read_j()


def test_only_packages_are_summed_and_dram_is_beside_them(machine: Path) -> None:
    """Core is inside the package, psys holds the package and more: adding them would count joules twice."""
    second = zone(machine, "intel-rapl:2", "package-1", 0)
    energy = cpu_energy(machine, frozenset(), guest=False)
    zone(machine, "intel-rapl:0", "package-0", 8_000_000)
    zone(machine, "intel-rapl:0:0", "core", 7_000_000)
    zone(machine, "intel-rapl:0:1", "dram", 5_500_000)
    zone(machine, "intel-rapl:1", "psys", 999_000_000)
    write(second, "4000000\n")
    assert joules(energy.packages) == pytest.approx(7.0)
    assert joules(energy.dram) == pytest.approx(0.5)


def test_a_socket_that_is_not_used_does_not_count(machine: Path) -> None:
    second = zone(machine, "intel-rapl:2", "package-1-die-0", 0)
    energy = cpu_energy(machine, frozenset({"0"}), guest=False)
    write(second, "4000000\n")
    assert joules(energy.packages) == 0.0


def test_an_energy_counter_that_wraps_goes_on(tmp_path: Path) -> None:
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 999_000_000)
    meter = Rapl([Domain(counter, 1e9)])
    assert meter.read_j() == 0.0
    write(counter, "4000000\n")
    assert meter.read_j() == pytest.approx(5.0)
    write(counter, "5000000\n")
    assert meter.read_j() == pytest.approx(6.0)


def test_amds_energy_driver_stands_in_where_there_is_no_powercap(bare: Path) -> None:
    sensor = bare / "sys/class/hwmon/hwmon3"
    write(sensor / "name", "amd_energy\n")
    for index, label in ((1, "Ecore000"), (2, "Ecore001"), (3, "Esocket0")):
        write(sensor / f"energy{index}_label", label + "\n")
        write(sensor / f"energy{index}_input", "1000000\n")
    energy = cpu_energy(bare, frozenset({"0"}), guest=False)
    for index in (1, 2, 3):
        write(sensor / f"energy{index}_input", "3500000\n")
    assert joules(energy.packages) == pytest.approx(2.5)
    assert energy.dram is None


def test_a_counter_for_root_only_says_so_and_what_to_do(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Since CVE-2020-8694 the kernel gives energy_uj to root alone; this test may run as root."""

    def denied(path: Path) -> float:
        if path.name == "energy_uj":
            raise _lost(path)
        return number(path)

    monkeypatch.setattr("backends.telemetry.rapl.number", denied)
    energy = cpu_energy(machine, frozenset(), guest=False).packages
    assert isinstance(energy, Missing)
    assert energy.reason == (
        "RAPL cannot be read: energy_uj may be read by root only (since CVE-2020-8694); "
        "run as root, or once: sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj"
    )
    assert channels_of(machine)["power"].unavailable == energy.reason


def _lost(path: Path) -> Exception:
    error = ReadingLost(f"{path.name}: Permission denied")
    error.__cause__ = PermissionError(errno.EACCES, "Permission denied")
    return error


def test_a_file_that_is_gone_or_holds_no_number_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReadingLost, match="temp: No such file"):
        number(tmp_path / "temp")
    write(tmp_path / "temp", "<unsupported>\n")
    with pytest.raises(ReadingLost, match="temp: could not convert"):
        number(tmp_path / "temp")
