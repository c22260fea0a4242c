"""Devices that are a part of an accelerator: a MIG instance, an AMD partition, one die, tile or core of several.

Compute is scaled by the units that are visible.  Memory and bandwidth are scaled by shares that the maker documents, and are
unknown where none is documented: a whole card's figure never stands for a part.
"""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from suite.hardware.figure import Figure, Figures
from suite.hardware.runtime import Partitions, Parts
from suite.hardware.spec import Caches, HardwareSpec, Link, Memory

if TYPE_CHECKING:  # the contracts import numpy, which reading a sheet does without
    from suite.backend import DeviceInfo

MIG_PATTERN = re.compile(r"MIG (?P<compute>\d+c\.)?(?P<profile>\d+g\.\d+gb)(?P<extensions>[+-][a-z.+-]+)?")


class Unrecognised(Exception):
    """The device is not, or not surely, what a sheet describes; the message is the reason a person reads."""


class Part(NamedTuple):
    """Which share of the accelerator the device is; ``None`` where a share is not known.

    ``label`` is empty for a whole accelerator.  ``local_caches`` says that each unit group has its own L2 (AMD, dies, tiles);
    otherwise the L2 is shared out with the memory (MIG).
    """

    label: str
    compute: float | None
    memory: float | None
    reason: str
    local_caches: bool = False


WHOLE = Part("", 1.0, 1.0, "")
OF_THE_WHOLE = "of the whole accelerator; a part's share is not documented"


def part_of(spec: HardwareSpec, info: "DeviceInfo", text: str) -> Part:
    """The part of ``spec`` that the device is; ``text`` is what name or runtime say of a partition.

    Raises ``Unrecognised`` when they contradict the sheet.
    """
    instance = MIG_PATTERN.fullmatch(text)
    if instance:
        return _mig(spec, info, text, instance)
    if text and spec.runtime.partitions:
        return _amd(spec, info, text, spec.runtime.partitions)
    parts = spec.runtime.parts
    if parts and text.casefold() in ("", parts.name.casefold()):
        return _fixed(spec, info, parts)
    if text:
        raise Unrecognised(f"partition '{text}' is none that the sheet of {spec.name} describes")
    return WHOLE


def visible_units(spec: HardwareSpec, info: "DeviceInfo") -> float | None:
    """Units the runtime shows, in the sheet's units; ``None`` where it does not say or counts something else."""
    unit = spec.runtime.reported_unit
    return None if unit is None or info.visible_units is None else info.visible_units * unit.units


def scaled(spec: HardwareSpec, part: Part) -> HardwareSpec:
    """The sheet of the part alone; links and power are the whole accelerator's and become unknown."""
    if not part.label:
        return spec
    why = f"{part.label} of the accelerator" if part.compute is not None else part.reason
    return replace(
        spec,
        part=part.label,
        units=spec.units.scaled(part.compute, why),
        peaks=_scaled_all(spec.peaks, part.compute, why),
        peak_variants=_scaled_all(spec.peak_variants, part.compute, why),
        sparse_peaks=_scaled_all(spec.sparse_peaks, part.compute, why),
        memory=_scaled_memory(spec.memory, part),
        caches=_scaled_caches(spec.caches, part),
        interconnect=_without_rates(spec.interconnect),
        host_link=_without_rates(spec.host_link),
        tdp_w=spec.tdp_w.scaled(None, OF_THE_WHOLE),
        measured_power_w=spec.measured_power_w.scaled(None, OF_THE_WHOLE),
    )


def _mig(spec: HardwareSpec, info: "DeviceInfo", text: str, instance: re.Match[str]) -> Part:
    """An instance: SMs as the runtime shows them, memory slices as NVIDIA's guide lists them."""
    visible, profile, mig = visible_units(spec, info), instance["profile"], spec.runtime.mig
    compute = visible / spec.units.value if visible and spec.units.value else None
    slices = mig.profiles.get(profile) if mig else None
    memory = slices / mig.memory_slices if mig and slices else None
    if compute is None and memory is None:
        raise Unrecognised(f"{text} of {spec.name}: neither its units nor its share of memory are known")
    if compute is not None and compute > 1:
        raise Unrecognised(
            f"{text} of {spec.name} shows {visible:g} {spec.unit_name}s, more than the {spec.units.value:g} of all"
        )
    said = [f"{visible:g} of {spec.units.value:g} {spec.unit_name}s" if compute else "units not reported, so no peak"]
    said += [
        f"{slices}/{mig.memory_slices} of memory and bandwidth" if mig and slices else f"no documented bandwidth of {profile}"
    ]
    if instance["compute"]:
        said += ["memory shared with other compute instances"]
    return Part(text, compute, memory, f"{text}: {', '.join(said)}")


def _amd(spec: HardwareSpec, info: "DeviceInfo", text: str, partitions: Partitions) -> Part:
    """A compute mode (SPX, CPX, ...) with a memory mode (NPS1, NPS4, ...), in either order; SPX with NPS1 is the whole."""
    words = re.split(r"[\s/,]+", text.upper())
    modes = [word for word in words if word in partitions.compute]
    shares = [word for word in words if re.fullmatch(r"NPS\d+", word)]
    if len(modes) > 1 or len(shares) > 1 or len(modes) + len(shares) < len(words):
        raise Unrecognised(f"partition '{text}' is none that the sheet of {spec.name} describes")
    devices = partitions.compute[modes[0]] if modes else 1
    _expect_units(spec, info, 1 / devices, f"in {text}")
    memory, why = _amd_memory(devices, shares[0] if shares else "", partitions)
    if devices == 1 and memory == 1:
        return WHOLE
    count = f"{spec.units.value / devices:g} of {spec.units.value:g}" if spec.units.value else f"1/{devices} of the"
    return Part(text, 1 / devices, memory, f"{text}: {count} {spec.unit_name}s, {why}", local_caches=True)


def _amd_memory(devices: int, mode: str, partitions: Partitions) -> tuple[float | None, str]:
    """Share of memory and bandwidth that one partition can reach, and how it is known."""
    if not mode and devices > 1:
        return None, "memory mode not reported, so no bandwidth"
    shares = partitions.memory.get(mode or "NPS1")
    if shares is None:
        return None, f"no documented bandwidth in {mode}"
    if shares == devices == 1:
        return 1.0, "all of the memory"
    if shares == 1:
        return None, "memory is interleaved over the whole accelerator and one partition's bandwidth is not documented"
    if devices < shares:
        return None, f"no documented bandwidth of {devices} device(s) over {shares} memory shares"
    together = f", shared by {devices // shares} partitions" if devices > shares else ""
    return 1 / shares, f"1/{shares} of memory and bandwidth{together}"


def _fixed(spec: HardwareSpec, info: "DeviceInfo", parts: Parts) -> Part:
    """One die, tile or core of an accelerator that is shown as several devices; all of it where all units are shown."""
    visible = visible_units(spec, info)
    if parts.devices == 1 or (visible is not None and visible == spec.units.value):
        return WHOLE
    fraction = 1 / parts.devices
    _expect_units(spec, info, fraction, f"as one {parts.name}")
    reason = f"one {parts.name} of {parts.devices}: 1/{parts.devices} of compute, memory and bandwidth"
    return Part(f"one {parts.name} of {parts.devices}", fraction, fraction, reason, local_caches=True)


def _expect_units(spec: HardwareSpec, info: "DeviceInfo", fraction: float, where: str) -> None:
    visible, whole = visible_units(spec, info), spec.units.value
    if visible is not None and whole is not None and visible != whole * fraction:
        unit = f"{spec.unit_name}s"
        raise Unrecognised(f"{spec.name} {where} has {whole * fraction:g} {unit}, but the runtime shows {visible:g}")


def _scaled_all(figures: Figures, fraction: float | None, why: str) -> dict[str, Figure]:
    return {name: figure.scaled(fraction, why) for name, figure in figures.items()}


def _scaled_memory(memory: Memory, part: Part) -> Memory:
    why = part.reason if part.memory is None else f"{part.label} of the accelerator"
    return replace(
        memory,
        capacity_bytes=memory.capacity_bytes.scaled(part.memory, why),
        visible_bytes=memory.visible_bytes.scaled(part.memory, why),
        bandwidth_bytes_s=memory.bandwidth_bytes_s.scaled(part.memory, why),
    )


def _scaled_caches(caches: Caches, part: Part) -> Caches:
    """A cache whose share is unknown is kept whole: a flush that is too large is still a flush."""
    l2_share, llc_share = part.compute if part.local_caches else part.memory, part.memory
    why = f"{part.label} of the accelerator"
    return replace(
        caches,
        l2_bytes=caches.l2_bytes.scaled(l2_share or 1, why),
        llc_bytes=caches.llc_bytes.scaled(llc_share or 1, why),
    )


def _without_rates(link: Link) -> Link:
    return replace(
        link,
        bidirectional_bytes_s=link.bidirectional_bytes_s.scaled(None, OF_THE_WHOLE),
        per_direction_bytes_s=link.per_direction_bytes_s.scaled(None, OF_THE_WHOLE),
    )
