"""Which sheet describes a device, by exact runtime names; a device that no sheet surely describes stays unknown.

A fraction of a wrong peak is worse than none: names are never matched in part (GB200 is not B200, nor H20 an H200), a name
that several boards share needs memory size, unit count or PCI device id to decide, and a part never gets the whole's peak.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from suite.hardware import cpu
from suite.hardware.catalogue import all_specs
from suite.hardware.makers import is_cpu, why_not
from suite.hardware.observed import with_reported
from suite.hardware.parts import Part, Unrecognised, part_of, scaled, visible_units
from suite.hardware.spec import HardwareSpec

if TYPE_CHECKING:  # the contracts import numpy, which reading a sheet does without
    from suite.backend import DeviceInfo

VGPU_PATTERN = re.compile(r"(GRID|NVIDIA) \S+-\d+(-\d+)?[ABCQ](ME)?")
GFX_PATTERN = re.compile(r"gfx[0-9a-f]{3,}")
PCI_ID_PATTERN = re.compile(r"0x[0-9a-f]{4}")
# Runtimes show up to 7.4 % more than the label says (GB that are GiB), 10 % on a B300, and up to 4 % less (ECC, TPU v4).
MEMORY_RANGE = (0.90, 1.12)


class Match(NamedTuple):
    """The sheet of a device and its id, or ``None`` for both; ``reason`` says how it was found or why not."""

    spec: HardwareSpec | None
    hardware: str | None
    reason: str


class Named(NamedTuple):
    """Sheets that a device's identity points to, what pointed there, and the partition that its name holds."""

    specs: list[HardwareSpec]
    how: str
    partition: str = ""
    confirm: bool = False


def match(info: "DeviceInfo", extra: Sequence[Path] = ()) -> Match:
    """Find the sheet of a device, scaled to the part it is, with what the device reports laid over it.

    ``info.details["pci_device_id"]`` (hexadecimal, ``0x74a1``) decides where the runtime's name does not.  A CPU's spec is
    derived from the device itself, unless one of the ``extra`` sheets has its name.  ``extra`` are folders with more sheets.
    """
    if is_cpu(info):
        if own := _own_cpu(info, extra):
            return own
        spec = cpu.derive(info)
        return Match(spec, spec.id, f"derived from cores, {spec.clocks.boost_hz.note or 'clock'} and vector width")
    try:
        named = _named(info, all_specs(extra))
        spec = _decided(named, info)
        part = part_of(spec, info, named.partition or (info.partition or "").strip())
        _check_units(spec, info, part, named.confirm)
        _check_memory(spec, info, part)
    except Unrecognised as unknown:
        return Match(None, None, str(unknown))
    return Match(with_reported(scaled(spec, part), info), spec.id, "; ".join(filter(None, (named.how, part.reason))))


def _own_cpu(info: "DeviceInfo", extra: Sequence[Path]) -> Match | None:
    """The user's own sheet of this CPU: the built-in ones are of accelerators."""
    name = info.name.strip()
    for spec in all_specs(extra) if extra else ():
        if any(entry.string == name for entry in spec.runtime.device_names) and not why_not(spec, info):
            return Match(with_reported(spec, info), spec.id, f"runtime name '{name}'")
    return None


def _named(info: "DeviceInfo", specs: Sequence[HardwareSpec]) -> Named:
    """By runtime name, longest first; else by gfx target and PCI device id."""
    name = info.name.strip()
    entries = [(entry, spec) for spec in specs for entry in spec.runtime.device_names]
    for entry, _ in sorted(entries, key=lambda pair: -len(pair[0].string)):
        partition = name.removeprefix(entry.string).removeprefix(" ") if name.startswith(f"{entry.string} MIG ") else ""
        if partition or name == entry.string:
            sharing = [spec for other, spec in entries if other.string == entry.string]
            _check_pci_id(info, sharing, specs)
            return Named(sharing, f"runtime name '{entry.string}'", partition, bool(entry.confirm))
    return _by_chip(info, specs)


def _by_chip(info: "DeviceInfo", specs: Sequence[HardwareSpec]) -> Named:
    gfx, pci_id = _gfx(info), _pci_id(info)
    sharing = [spec for spec in specs if gfx and gfx == spec.runtime.gfx_target and pci_id in spec.runtime.pci_device_ids]
    if sharing:
        return Named(sharing, f"{gfx} with PCI device id {pci_id}", confirm=True)
    name = info.name.strip()
    if VGPU_PATTERN.fullmatch(name):
        raise Unrecognised(f"'{name}' is a vGPU, a share of a card: the whole card's peak does not apply")
    if gfx:
        given = f"PCI device id {pci_id}" if pci_id else "no PCI device id"
        raise Unrecognised(f"no sheet has the runtime name '{name}', and {gfx} with {given} does not decide it")
    raise Unrecognised(f"no sheet has the runtime name '{name}'")


def _decided(named: Named, info: "DeviceInfo") -> HardwareSpec:
    """The one sheet left when memory sizes are compared."""
    if len(named.specs) == 1:
        return named.specs[0]
    fitting = [spec for spec in named.specs if info.memory_bytes and _memory_fits(spec, info.memory_bytes, 1.0)]
    if len(fitting) == 1:
        return fitting[0]
    shared = ", ".join(spec.id for spec in named.specs)
    raise Unrecognised(
        f"{named.how} is shared by {shared}, and {_gb(info.memory_bytes)} of memory does not decide between them"
    )


def _check_units(spec: HardwareSpec, info: "DeviceInfo", part: Part, confirm: bool) -> None:
    """A whole accelerator shows all its units; fewer, with no partition named, are a part that nothing describes."""
    visible, whole = visible_units(spec, info), spec.units.value
    if part.label or whole is None:
        return
    if visible is None and confirm:
        raise Unrecognised(
            f"'{info.name.strip()}' could be {spec.name}, but the runtime gives no {spec.unit_name} count to confirm it"
        )
    if visible is not None and (visible < whole or (confirm and visible != whole)):
        unit = f"{spec.unit_name}s"
        raise Unrecognised(f"the runtime shows {visible:g} of {spec.name}'s {whole:g} {unit} and names no partition")


def _check_memory(spec: HardwareSpec, info: "DeviceInfo", part: Part) -> None:
    """A size that is neither the sheet's nor the part's means another variant, or a share that nothing names."""
    if info.memory_bytes and not _memory_fits(spec, info.memory_bytes, part.memory or 1.0, bool(part.label)):
        declared = _gb((spec.memory.capacity_bytes.value or 0) * (part.memory or 1.0))
        raise Unrecognised(f"the runtime shows {_gb(info.memory_bytes)} of memory where {spec.name} has {declared}")


def _memory_fits(spec: HardwareSpec, memory_bytes: int, fraction: float, part: bool = False) -> bool:
    """Whether a reported size is within reach of the label; partitions hold back more, so theirs is bounded above only."""
    capacity = spec.memory.capacity_bytes.value
    if capacity is None:
        return True
    low, high = MEMORY_RANGE
    return (0 if part else low) <= memory_bytes / (capacity * fraction) <= high


def _check_pci_id(info: "DeviceInfo", sharing: Sequence[HardwareSpec], specs: Sequence[HardwareSpec]) -> None:
    pci_id = _pci_id(info)
    other = next((spec for spec in specs if pci_id in spec.runtime.pci_device_ids and spec not in sharing), None)
    if other:
        raise Unrecognised(f"the runtime name is '{info.name.strip()}', but PCI device id {pci_id} belongs to {other.name}")


def _gfx(info: "DeviceInfo") -> str:
    """``gfx942`` from an architecture such as ``gfx942:sramecc+:xnack-``, or from a device named after its target."""
    candidates = (text.split(":")[0].strip() for text in (info.architecture or "", info.name))
    return next((text for text in candidates if GFX_PATTERN.fullmatch(text)), "")


def _pci_id(info: "DeviceInfo") -> str:
    text = info.details.get("pci_device_id", "").strip().lower()
    return text if PCI_ID_PATTERN.fullmatch(text) else ""


def _gb(size_bytes: float) -> str:
    return f"{size_bytes / 1e9:.4g} GB"
