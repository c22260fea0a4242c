"""Devices as runtimes report them, and the device that a sheet would describe."""

from typing import Any

from suite.backend import DeviceInfo
from suite.hardware.spec import HardwareSpec

MIB = 2**20


def device(name: str, backend: str = "cuda", memory_mib: float = 0, **facts: Any) -> DeviceInfo:
    return DeviceInfo(backend=backend, index=0, name=name, uid="uid", memory_bytes=round(memory_mib * MIB), **facts)


def described(spec: HardwareSpec, name: str) -> DeviceInfo:
    """A device of this sheet under one of its names: its share of units and memory, as the sheet has them."""
    devices = spec.runtime.parts.devices if spec.runtime.parts else 1
    unit, count = spec.runtime.reported_unit, spec.units.value
    return DeviceInfo(
        backend="cuda",
        index=0,
        name=name,
        uid="uid",
        memory_bytes=round((spec.memory_bytes or 0) / devices),
        visible_units=round(count / devices / unit.units) if unit and count else None,
    )
