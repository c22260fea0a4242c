"""Whose devices a backend drives, and whether a device can be what a sheet describes at all."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from suite.hardware.spec import HardwareSpec

if TYPE_CHECKING:  # the contracts import numpy, which reading a sheet does without
    from suite.backend import DeviceInfo

CPU = "CPU"  # the vendor of a derived spec; a sheet of the user's own is a CPU's by this or by its unit, the core
# A backend that is not named here, a plugin's or the user's own, may drive anybody's, unless it says its platform.
MAKERS_OF_BACKEND = {"cuda": ("NVIDIA",), "rocm": ("AMD",), "cpu": (CPU,)}
MAKERS_OF_PLATFORM = {"cuda": ("NVIDIA",), "rocm": ("AMD",), "gpu": ("NVIDIA", "AMD"), "tpu": ("Google",), "cpu": (CPU,)}


# Whose CPU a name is of, by a word in it: as makers, and vendors of sheets, write themselves.
MAKERS_OF_CPUS = {"intel": "Intel", "amd": "AMD", "authenticamd": "AMD", "genuineintel": "Intel"}


def maker(spec: HardwareSpec) -> str:
    """The vendor of an accelerator, or ``CPU`` for a sheet of one: AMD and Intel make both."""
    return CPU if spec.unit_name == "core" else spec.vendor


def cache_names(spec: HardwareSpec) -> tuple[str, str]:
    """What ``l2_bytes`` and ``llc_bytes`` of a sheet are: a CPU's last level is its L3, and is all that is derived of one."""
    last = "last-level cache" if maker(spec) == CPU else "memory-side cache"
    return (last if spec.derived else "L2"), last


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
    if CPU in possible and maker(spec) == CPU:
        return _of_another_cpu(spec, info)
    if not possible or maker(spec) in possible:
        return ""
    return f"{info.backend} device {info.index} ({info.name}) is {said(possible)}, and {spec.id} {said((maker(spec),))}"


def _of_another_cpu(spec: HardwareSpec, info: "DeviceInfo") -> str:
    """A sheet that names this very CPU describes it, whatever it says of its vendor."""
    own, its = _maker_of_cpu(info.name), _maker_of_cpu(spec.vendor)
    named = any(entry.string == info.name.strip() for entry in spec.runtime.device_names)
    if named or not own or not its or own == its:
        return ""
    return f"{info.backend} device {info.index} ({info.name}) is a CPU of {own}, and {spec.id} one of {its}"


def _maker_of_cpu(name: str) -> str:
    """Empty where no word of it is a maker's."""
    words = re.split(r"[^a-z]+", re.sub(r"\((r|tm|c)\)", " ", name.lower()))
    return next((MAKERS_OF_CPUS[word] for word in words if word in MAKERS_OF_CPUS), "")


def said(possible: tuple[str, ...]) -> str:
    """``of NVIDIA``, ``of NVIDIA or AMD``, ``a CPU``."""
    return "a CPU" if possible == (CPU,) else f"of {' or '.join(possible)}"
