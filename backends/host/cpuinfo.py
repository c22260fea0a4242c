"""The processors of this machine as this process may use them: names, cores, instruction sets, caches and clocks."""

import hashlib
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from backends.host.cgroup import ROOT, cpu_quota

# Flags that decide vector width, matrix units and formats; the rest say nothing about speed.
_ISA_PREFIXES = ("avx", "amx", "fma", "f16c", "sse4", "neon", "asimd", "sve", "sme", "i8mm", "bf16", "fphp", "vsx", "rvv")


class Place(NamedTuple):
    """A physical core, as the kernel names it."""

    socket: str
    core: str


class Clock(NamedTuple):
    """A maximum clock and where it was read, because a guest often reports only a nominal one."""

    hz: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Processors:
    """The processors available to this process.

    ``name`` is the model name the kernel reports, or what identifies the part where it reports none.  ``cpus`` are the
    logical CPUs in the affinity mask; ``cores`` counts distinct physical cores among them, no more than the quota allows.
    ``llc_bytes`` is the sum over the last-level caches that those CPUs can reach.
    """

    name: str
    machine: str
    cpus: tuple[int, ...]
    cores: int
    sockets: int
    quota: float | None
    isa: tuple[str, ...]
    guest: bool
    llc_bytes: int | None
    llc_instances: int
    max_clock: Clock

    @property
    def most_threads(self) -> int:
        """Threads that need not take turns: one a logical CPU, and no more than whole CPUs of the quota."""
        return len(self.cpus) if self.quota is None else min(len(self.cpus), max(1, int(self.quota)))


def processors(root: Path = ROOT) -> Processors:
    """Read this machine's processors; every part that the machine does not tell is ``None`` or empty."""
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    records = _records(root)
    first = records[0] if records else {}
    flags = first.get("flags", first.get("Features", "")).split()
    quota = cpu_quota(root)
    taken = places(cpus, root)
    caches = _last_level_caches(root, cpus)
    return Processors(
        name=_name(first),
        machine=platform.machine(),
        cpus=cpus,
        cores=min(len(taken), max(1, int(quota))) if quota is not None else len(taken),
        sockets=len({each.socket for each in taken}),
        quota=quota,
        isa=tuple(sorted(flag for flag in flags if flag.startswith(_ISA_PREFIXES))),
        guest="hypervisor" in flags,
        llc_bytes=sum(caches.values()) or _cache_of(first),
        llc_instances=len(caches),
        max_clock=_max_clock(root, cpus, records),
    )


def places(cpus: Iterable[int], root: Path = ROOT) -> set[Place]:
    """The distinct physical cores of logical CPUs."""
    return {_place(root, cpu) for cpu in cpus}


def _place(root: Path, cpu: int) -> Place:
    """A CPU that does not tell counts as a core of its own."""
    topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
    try:
        return Place((topology / "physical_package_id").read_text().strip(), (topology / "core_id").read_text().strip())
    except OSError:
        return Place("0", f"cpu{cpu}")


def machine_uid(model: str, threads: int, root: Path = ROOT) -> str:
    """A stable hash of the machine's id, its CPU model and the threads used: recognises what is measured, not whose it is.

    Half the cores have other roofs than all of them, and count as another device.
    """
    for path in ("etc/machine-id", "var/lib/dbus/machine-id"):
        try:
            identity = (root / path).read_text().strip()
        except OSError:
            continue
        if identity:
            break
    else:
        identity = platform.node()
    return hashlib.sha256(f"cpu:{identity}:{model}:{threads}".encode()).hexdigest()[:16]


def memory_total_bytes(root: Path = ROOT) -> int:
    """Physical memory."""
    return _meminfo_bytes(root, "MemTotal")


def memory_available_bytes(root: Path = ROOT) -> int:
    """Memory that programs can still get without swapping, as the kernel estimates it."""
    return _meminfo_bytes(root, "MemAvailable")


def _meminfo_bytes(root: Path, name: str) -> int:
    for line in (root / "proc/meminfo").read_text().splitlines():
        key, _, rest = line.partition(":")
        if key == name:
            return int(rest.split()[0]) * 1024
    raise OSError(f"/proc/meminfo has no {name}")


def _records(root: Path) -> list[dict[str, str]]:
    """/proc/cpuinfo as one mapping a logical CPU."""
    records: list[dict[str, str]] = []
    for block in (root / "proc/cpuinfo").read_text().split("\n\n"):
        pairs = (line.partition(":") for line in block.splitlines() if ":" in line)
        record = {key.strip(): value.strip() for key, _, value in pairs}
        if record:
            records.append(record)
    return records


def _name(record: dict[str, str]) -> str:
    if "model name" in record:
        return record["model name"]
    part = [record[key] for key in ("CPU implementer", "CPU part") if key in record]
    return " ".join([platform.machine(), *part])


def _last_level_caches(root: Path, cpus: tuple[int, ...]) -> dict[tuple[int, str], int]:
    """Bytes of each distinct last-level cache, by level and the CPUs that share it."""
    found: dict[tuple[int, str], int] = {}
    for cpu in cpus:
        for index in sorted((root / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index*")):
            try:
                kind, level = (index / "type").read_text().strip(), int((index / "level").read_text())
                shared, size = (index / "shared_cpu_list").read_text().strip(), _size_bytes((index / "size").read_text())
            except (OSError, ValueError):
                continue
            if kind != "Instruction":
                found[level, shared] = size
    last = max((level for level, _ in found), default=0)
    return {key: size for key, size in found.items() if key[0] == last}


def _cache_of(record: dict[str, str]) -> int | None:
    try:
        return _size_bytes(record["cache size"].replace(" KB", "K"))
    except (KeyError, ValueError):
        return None


def _size_bytes(text: str) -> int:
    """Bytes of a size such as ``32768K``."""
    text = text.strip()
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    return int(text.rstrip("KMG")) * scale


def _max_clock(root: Path, cpus: tuple[int, ...], records: list[dict[str, str]]) -> Clock:
    limits = []
    for cpu in cpus:
        try:
            limits.append(int((root / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq").read_text()))
        except (OSError, ValueError):
            continue
    if limits:
        return Clock(max(limits) * 1e3, "cpufreq cpuinfo_max_freq")
    current = [float(record["cpu MHz"]) for record in records if "cpu MHz" in record]
    if current:
        return Clock(max(current) * 1e6, "/proc/cpuinfo cpu MHz: the clock at the time of reading, nominal in a guest")
    return Clock(None, "the machine reports no clock")
