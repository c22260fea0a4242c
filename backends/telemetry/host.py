"""Telemetry of a CPU: cpufreq clocks, RAPL energy, temperatures, memory in use and the load of other processes."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from backends.host.cgroup import ROOT
from backends.host.cpuinfo import Processors, memory_available_bytes, memory_total_bytes
from backends.host.processes import ForeignLoad
from backends.telemetry.energy import EnergyMeter
from backends.telemetry.gauges import Gauge, Missing, Rate, Shared, Since
from backends.telemetry.polled import PERIOD_S, PolledTelemetry
from backends.telemetry.rapl import cpu_energy
from backends.telemetry.sysfs import number, text
from suite.telemetry import LOAD_SPAN_S

# hwmon drivers whose first sensor is the whole package: Intel's and AMD's.
PACKAGE_SENSORS = ("coretemp", "k10temp", "zenpower")


def cpu_telemetry(cpu: Processors, threads: int, period_s: float = PERIOD_S, root: Path = ROOT) -> PolledTelemetry:
    """Telemetry of the processors in use; what this machine does not show is unavailable with the reason.

    RAPL counts whole packages, so power and energy are of the sockets whose cores may be used, other programs included.
    """
    load = ForeignLoad(cpu.cpus, cpu.cores, threads, root)
    energy = cpu_energy(root, _sockets(cpu, root), cpu.guest)
    total_bytes = memory_total_bytes(root)
    gauges: dict[str, Gauge | Missing] = {
        **_clocks(cpu, root),
        "memory_clock": Missing("the operating system does not report the memory clock of a CPU"),
        "power": _power(energy.packages),
        "temperature": _temperature(root),
        "hotspot_temperature": Missing("a CPU package reports one temperature"),
        "memory_temperature": Missing("the operating system does not report the memory's temperature"),
        "throttle": Missing("a CPU reports no throttle reasons, only how long thermal events lasted"),
        "memory_used": Gauge(lambda: float(total_bytes - memory_available_bytes(root)), slow=True),
        "pcie_tx": Missing("a CPU is no device on PCIe"),
        "pcie_rx": Missing("a CPU is no device on PCIe"),
        "violation.thermal": _thermal_violation(cpu, root),
    }
    parts = {} if energy.dram is None else {"energy.dram": energy.dram}
    return PolledTelemetry(
        gauges, energy.packages, load.processes, period_s, on_start=load.start, parts=parts, others_span_s=LOAD_SPAN_S
    )


def _clocks(cpu: Processors, root: Path) -> dict[str, Gauge | Missing]:
    """Mean and spread of the cores' clocks, from one look at all of them."""
    readable = [path for index in cpu.cpus if (path := _cpu(index, root) / "cpufreq/scaling_cur_freq").exists()]
    if not readable:
        why = "a guest sees only a nominal clock" if cpu.guest else "the kernel offers no cpufreq"
        return dict.fromkeys(("sm_clock", "sm_clock_spread"), Missing(f"no clock reading: {why}"))
    clocks_hz = Shared(partial(_clocks_hz, readable))
    return {
        "sm_clock": Gauge(lambda: sum(clocks_hz()) / len(clocks_hz())),
        "sm_clock_spread": Gauge(lambda: max(clocks_hz()) - min(clocks_hz())),
    }


def _clocks_hz(paths: Sequence[Path]) -> list[float]:
    return [number(path) * 1e3 for path in paths]


def _power(energy: EnergyMeter | Missing) -> Gauge | Missing:
    if isinstance(energy, Missing):
        return energy
    rate = Rate(energy.read_j)
    return Gauge(rate.read, begin=rate.begin)


def _temperature(root: Path) -> Gauge | Missing:
    for zone in sorted((root / "sys/class/thermal").glob("thermal_zone*")):
        if text(zone / "type") in ("x86_pkg_temp", "cpu-thermal", "cpu_thermal"):
            return Gauge(partial(_celsius, zone / "temp"), slow=True)
    for sensor in sorted((root / "sys/class/hwmon").glob("hwmon*")):
        if text(sensor / "name") in PACKAGE_SENSORS and (sensor / "temp1_input").exists():
            return Gauge(partial(_celsius, sensor / "temp1_input"), slow=True)
    return Missing("no thermal zone or sensor of a CPU package")


def _celsius(path: Path) -> float:
    return number(path) * 1e-3


def _thermal_violation(cpu: Processors, root: Path) -> Gauge | Missing:
    """Time that packages were held down by their temperature: the longest of those in use."""
    name = "thermal_throttle/package_throttle_total_time_ms"
    # Every CPU of a package shows the package's time: one of them is enough.
    of_package = {_socket(index, root) or f"cpu{index}": _cpu(index, root) / name for index in cpu.cpus}
    paths = [path for path in of_package.values() if path.exists()]
    if not paths:
        return Missing("the kernel counts no thermal events of this CPU")
    since = Since(lambda: max(number(path) * 1e-3 for path in paths))
    return Gauge(since.read, slow=True, closing=True, begin=since.begin)


def _sockets(cpu: Processors, root: Path) -> frozenset[str]:
    """Ids of the sockets in use; empty where a CPU does not tell its own."""
    told = [_socket(index, root) for index in cpu.cpus]
    return frozenset(told) if all(told) else frozenset()


def _socket(index: int, root: Path) -> str:
    return text(_cpu(index, root) / "topology/physical_package_id")


def _cpu(index: int, root: Path) -> Path:
    return root / f"sys/devices/system/cpu/cpu{index}"
