"""What a device reports of itself, laid over its sheet: clocks, caches, unit counts and memory; never peak rates."""

from dataclasses import replace
from typing import TYPE_CHECKING

from suite.hardware.figure import Figure, reported
from suite.hardware.parts import visible_units
from suite.hardware.spec import Caches, HardwareSpec

if TYPE_CHECKING:  # the contracts import numpy, which reading a sheet does without
    from suite.backend import DeviceInfo


def with_reported(spec: HardwareSpec, info: "DeviceInfo") -> HardwareSpec:
    """The spec with the device's own figures where it gives them."""
    return replace(
        spec,
        units=_over(visible_units(spec, info), spec.units),
        clocks=replace(spec.clocks, boost_hz=_over(info.max_clock_hz, spec.clocks.boost_hz)),
        memory=replace(spec.memory, visible_bytes=_over(info.memory_bytes or None, spec.memory.visible_bytes)),
        caches=_caches(spec, info.llc_bytes),
    )


def _over(value: float | None, declared: Figure) -> Figure:
    return declared if value is None else reported(value, declared)


def _caches(spec: HardwareSpec, llc_bytes: int | None) -> Caches:
    """NVIDIA's report stands as it is; elsewhere only a larger one does: ROCm reports one die's L2, 4 MB on an MI300X."""
    if llc_bytes is None or (spec.vendor != "NVIDIA" and llc_bytes <= (spec.llc_bytes or 0)):
        return spec.caches
    if spec.vendor != "NVIDIA" and spec.caches.llc_bytes.value is not None:
        return replace(spec.caches, llc_bytes=reported(llc_bytes, spec.caches.llc_bytes))
    return replace(spec.caches, l2_bytes=reported(llc_bytes, spec.caches.l2_bytes))
