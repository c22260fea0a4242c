"""How an accelerator shows itself to a runtime: its names, the unit it counts, and the parts it can be split into."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from suite.hardware.figure import Source


@dataclass(frozen=True, slots=True)
class DeviceName:
    """One exact runtime string.  ``confirm="units"`` marks a string that several boards share: the unit count must decide."""

    string: str
    api: str = ""
    sources: tuple[Source, ...] = ()
    confidence: str = "low"
    note: str = ""
    confirm: str = ""


@dataclass(frozen=True, slots=True)
class ReportedUnit:
    """What the runtime counts as ``visible_units``: one of them is ``units`` of the sheet's compute units."""

    name: str
    units: float
    sources: tuple[Source, ...] = ()
    confidence: str = "high"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Parts:
    """An accelerator that the runtime always shows as several devices (``devices`` > 1) or joins into one (1)."""

    name: str
    devices: int
    sources: tuple[Source, ...] = ()
    confidence: str = "low"
    note: str = ""


@dataclass(frozen=True, slots=True)
class MigProfiles:
    """NVIDIA's instance profiles: memory slices of each, out of ``memory_slices``.

    A memory slice is a share of capacity and of bandwidth; a profile that is not listed has no documented share.
    """

    memory_slices: int
    profiles: Mapping[str, int]
    sources: tuple[Source, ...] = ()
    confidence: str = "low"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Partitions:
    """AMD's modes: into how many devices a compute mode splits the accelerator, into how many shares a memory mode."""

    compute: Mapping[str, int]
    memory: Mapping[str, int]
    sources: tuple[Source, ...] = ()
    confidence: str = "low"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Runtime:
    """Everything that recognises a device; ``pci_device_ids`` are hexadecimal strings such as ``0x74a1``."""

    device_names: tuple[DeviceName, ...] = ()
    compute_capability: str | None = None
    gfx_target: str | None = None
    pci_device_ids: tuple[str, ...] = ()
    pci_sources: tuple[Source, ...] = field(default=())
    reported_unit: ReportedUnit | None = None
    parts: Parts | None = None
    mig: MigProfiles | None = None
    partitions: Partitions | None = None
