"""Triton on a device that is not there: kernels are compiled for it by their own launch path, and never loaded."""

from types import SimpleNamespace
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device

LANES_OF_GFX9, LANES = 64, 32


def target_of(device: Device) -> GPUTarget:
    """What Triton compiles for."""
    if device.is_amd:
        return GPUTarget("hip", device.architecture, LANES_OF_GFX9 if device.architecture.startswith("gfx9") else LANES)
    return GPUTarget("cuda", int(device.architecture), LANES)


def compiled(call: Call, device: Device) -> Any:
    """The kernel of a call, with the types, constants and alignments that a launch would have.

    Its tensors need no memory (``meta``).  Raises Triton's errors.
    """
    target = target_of(device)
    absent = {"get_current_device": lambda: 0, "get_current_stream": lambda _: 0, "get_current_target": lambda: target}
    driver.set_active(SimpleNamespace(**absent))
    call.kernel.device_caches.clear()  # kept by the number of a device, which is 0 for all
    return call.kernel.warmup(*call.arguments, grid=call.grid, **call.constants, **call.options)
