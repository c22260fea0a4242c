"""Whose devices a backend drives, and whether a device can be what a sheet describes at all."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from suite.hardware.spec import HardwareSpec

if TYPE_CHECKING:  # the contracts import numpy, which reading a sheet does without
    from suite.backend import DeviceInfo

CPU = "CPU"  # the vendor of a derived spec; a sheet of the user's own is a CPU's by this or by its unit, the core
# A backend that is not named here, a plugin's or the user's own, may drive anybody's, unless it says its platform.
MAKERS_OF_BACKEND = {"cuda": ("NVIDIA",), "rocm": ("AMD",), "cpu": (CPU,)}
MAKERS_OF_PLATFORM = {"cuda": ("NVIDIA",), "rocm": ("AMD",), "gpu": ("NVIDIA", "AMD"), "tpu": ("Google",), "cpu": (CPU,)}


def maker(spec: HardwareSpec) -> str:
    """The vendor of an accelerator, or ``CPU`` for a sheet of one: AMD and Intel make both."""
    return CPU if spec.unit_name == "core" else spec.vendor


def makers(backend: str, facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Whose devices a backend drives, empty for anybody's; ``facts`` may hold the ``platform`` that it computes on."""
    if backend in MAKERS_OF_BACKEND:
        return MAKERS_OF_BACKEND[backend]
    return MAKERS_OF_PLATFORM.get(str(facts.get("platform", "")), ())


def is_cpu(info: "DeviceInfo") -> bool:
    """Whether a device is the host's processor, whatever drives it."""
    return makers(info.backend, info.details) == (CPU,)


def why_not(spec: HardwareSpec, info: "DeviceInfo") -> str:
    """Why a device cannot be what a sheet describes, as a clause; empty where it may be."""
    possible = makers(info.backend, info.details)
    if not possible or maker(spec) in possible:
        return ""
    return f"{info.backend} device {info.index} ({info.name}) is {said(possible)}, and {spec.id} {said((maker(spec),))}"


def said(possible: tuple[str, ...]) -> str:
    """``of NVIDIA``, ``of NVIDIA or AMD``, ``a CPU``."""
    return "a CPU" if possible == (CPU,) else f"of {' or '.join(possible)}"
