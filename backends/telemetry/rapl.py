"""The kernel's energy counters of a CPU: RAPL through powercap, for Intel and AMD alike, or AMD's own hwmon driver."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from backends.telemetry.energy import EnergyMeter
from backends.telemetry.gauges import Missing, ReadingLost
from backends.telemetry.sysfs import number, text

# The counters move every millisecond: a tenth of a second of them is good to 1 %.
STEP_S = 0.001
SHORTEST_WINDOW_S = 0.1
REMEDY = "run as root, or once: sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj"


class Domain(NamedTuple):
    """One counter: its file (uJ), and what it holds before it starts again from nothing; 0 where that is not told."""

    energy: Path
    range_uj: float


class Rapl:
    """Joules used by several domains together, with wrap-around undone."""

    def __init__(self, domains: Sequence[Domain]) -> None:
        self._domains = tuple(domains)
        self._last_uj = [_energy_uj(domain.energy) for domain in domains]
        self._total_uj = 0.0

    def read_j(self) -> float:
        """Joules since this meter was made; must be called more often than a counter wraps (about a minute under load)."""
        for index, domain in enumerate(self._domains):
            value_uj = _energy_uj(domain.energy)
            step_uj = value_uj - self._last_uj[index]
            if step_uj < 0 and not domain.range_uj:
                raise ReadingLost("the energy counter fell: it was reset within the window")
            self._total_uj += step_uj if step_uj >= 0 else step_uj + domain.range_uj
            self._last_uj[index] = value_uj
        return self._total_uj / 1e6


class CpuEnergy(NamedTuple):
    """Meters of the packages together, and of the memory beside them where that has counters of its own."""

    packages: EnergyMeter | Missing
    dram: EnergyMeter | None


def cpu_energy(root: Path, sockets: Collection[str], guest: bool) -> CpuEnergy:
    """Find the counters of the sockets whose cores are used (their ids; empty for all).

    Only packages are summed.  A package's ``core`` and ``uncore`` are parts of it, ``psys`` is the whole platform and would
    count the packages twice, and ``dram`` is outside it: that is a meter of its own.
    """
    zones = sorted((root / "sys/class/powercap").glob("intel-rapl:*"))
    packages = [zone for zone in zones if text(zone / "name").startswith("package") and _is_used(zone, sockets)]
    if not packages:
        return CpuEnergy(_meter(_amd_sockets(root)) or _no_counter(guest), None)
    dram = [
        zone for zone in zones if text(zone / "name") == "dram" and zone.name.rpartition(":")[0] in {p.name for p in packages}
    ]
    beside = _meter([_domain(zone) for zone in dram])
    return CpuEnergy(
        _meter([_domain(zone) for zone in packages]) or _no_counter(guest), beside if isinstance(beside, EnergyMeter) else None
    )


def _meter(domains: Sequence[Domain]) -> EnergyMeter | Missing | None:
    if not domains:
        return None
    try:
        return EnergyMeter(Rapl(domains).read_j, SHORTEST_WINDOW_S, STEP_S)
    except ReadingLost as error:
        return Missing(f"RAPL cannot be read: {error}")


def _is_used(zone: Path, sockets: Collection[str]) -> bool:
    """Whether a zone (``package-1``, or ``package-1-die-0``) is of a socket in use."""
    return not sockets or text(zone / "name").split("-")[1] in sockets


def _domain(zone: Path) -> Domain:
    return Domain(zone / "energy_uj", _range_uj(zone))


def _amd_sockets(root: Path) -> list[Domain]:
    """The driver ``amd_energy`` labels sockets ``Esocket0`` and so on, and extends its counters to 64 bits itself."""
    sensors = [path for path in (root / "sys/class/hwmon").glob("hwmon*") if text(path / "name") == "amd_energy"]
    labels = [label for sensor in sensors for label in sorted(sensor.glob("energy*_label")) if "socket" in text(label)]
    return [Domain(label.with_name(label.name.replace("_label", "_input")), 0.0) for label in labels]


def _no_counter(guest: bool) -> Missing:
    why = "a guest is not shown its host's" if guest else "the kernel offers neither powercap nor amd_energy"
    return Missing(f"no RAPL energy counter: {why}")


def _energy_uj(path: Path) -> float:
    try:
        return number(path)
    except ReadingLost as error:
        if isinstance(error.__cause__, PermissionError):
            raise ReadingLost(f"{path.name} may be read by root only (since CVE-2020-8694); {REMEDY}") from error
        raise


def _range_uj(zone: Path) -> float:
    try:
        return number(zone / "max_energy_range_uj")
    except ReadingLost:
        return 0.0
