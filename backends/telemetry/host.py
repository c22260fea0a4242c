"""Telemetry of a CPU: cpufreq clocks, RAPL energy, thermal zones, memory in use and the load of other processes."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from backends.host.cgroup import ROOT
from backends.host.cpuinfo import Processors, memory_available_bytes, memory_total_bytes
from backends.host.processes import ForeignLoad
from backends.telemetry.polled import PERIOD_S, EnergyMeter, Gauge, Missing, PolledTelemetry, ReadingLost


class Rapl:
    """Joules used by all packages together, from the kernel's powercap counters, with wrap-around undone."""

    def __init__(self, domains: Sequence[Path]) -> None:
        self._domains = tuple(domains)
        self._ranges_uj = [_number(domain / "max_energy_range_uj") for domain in domains]
        self._last_uj = [_number(domain / "energy_uj") for domain in domains]
        self._total_uj = 0.0

    def read_j(self) -> float:
        """Joules since this meter was made; must be called more often than a counter wraps (about a minute under load)."""
        for index, domain in enumerate(self._domains):
            value_uj = _number(domain / "energy_uj")
            step_uj = value_uj - self._last_uj[index]
            self._total_uj += step_uj if step_uj >= 0 else step_uj + self._ranges_uj[index]
            self._last_uj[index] = value_uj
        return self._total_uj / 1e6


class PowerFromEnergy:
    """Mean power between two readings of an energy counter."""

    def __init__(self, meter: EnergyMeter, clock_s: Callable[[], float] = time.perf_counter) -> None:
        self._meter = meter
        self._clock_s = clock_s
        self._last: tuple[float, float] | None = None

    def read_w(self) -> float | None:
        """Watts since the last call; ``None`` on the first."""
        at_s, energy_j = self._clock_s(), self._meter.read_j()
        last, self._last = self._last, (at_s, energy_j)
        if last is None or at_s <= last[0]:
            return None
        return (energy_j - last[1]) / (at_s - last[0])


def cpu_telemetry(cpu: Processors, threads: int, period_s: float = PERIOD_S, root: Path = ROOT) -> PolledTelemetry:
    """Telemetry of the processors in use; what this machine does not show is unavailable with the reason."""
    load = ForeignLoad(cpu.cpus, cpu.cores, threads, root)
    energy = _energy(root)
    gauges: dict[str, Gauge | Missing] = {
        "sm_clock": _clock(cpu, root),
        "memory_clock": Missing("the operating system does not report the memory clock of a CPU"),
        "power": _power(energy),
        "temperature": _temperature(root),
        "throttle": Missing("a CPU reports no throttle reasons, only counts of thermal events"),
        "memory_used": Gauge(lambda: float(memory_total_bytes(root) - memory_available_bytes(root))),
    }
    return PolledTelemetry(gauges, energy, load.processes, period_s, on_start=load.start)


def _clock(cpu: Processors, root: Path) -> Gauge | Missing:
    paths = [root / f"sys/devices/system/cpu/cpu{index}/cpufreq/scaling_cur_freq" for index in cpu.cpus]
    readable = [path for path in paths if path.exists()]
    if not readable:
        why = "a guest sees only a nominal clock" if cpu.guest else "the kernel offers no cpufreq"
        return Missing(f"no clock reading: {why}")
    return Gauge(lambda: sum(_scaled(path, 1e3) for path in readable) / len(readable))


def _energy(root: Path) -> EnergyMeter | Missing:
    zones = sorted((root / "sys/class/powercap").glob("intel-rapl:*"))
    packages = [zone for zone in zones if _text(zone / "name").startswith("package")]
    if not packages:
        return Missing("no RAPL energy counter on this machine")
    try:
        return EnergyMeter(Rapl(packages).read_j, shortest_window_s=0.0)
    except ReadingLost as error:
        return Missing(f"RAPL cannot be read: {error}")


def _power(energy: EnergyMeter | Missing) -> Gauge | Missing:
    return energy if isinstance(energy, Missing) else Gauge(PowerFromEnergy(energy).read_w)


def _temperature(root: Path) -> Gauge | Missing:
    for zone in sorted((root / "sys/class/thermal").glob("thermal_zone*")):
        if _text(zone / "type") in ("x86_pkg_temp", "cpu-thermal", "cpu_thermal"):
            return Gauge(partial(_scaled, zone / "temp", 1e-3))
    return Missing("no thermal zone of a CPU package")


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _scaled(path: Path, factor: float) -> float:
    return _number(path) * factor


def _number(path: Path) -> float:
    try:
        return float(path.read_text())
    except (OSError, ValueError) as error:
        raise ReadingLost(f"{path.name}: {getattr(error, 'strerror', None) or error}") from error
