"""Dependent launches (CUDA's programmatic dependent launch): one begins while the launch before it ends.

Such a launch says at once that the next one may begin too, and then waits for what those before it wrote.  It reads and writes
nothing before that, so that launches end in their order.
"""

from typing import Any

from backends.triton.gemm.device import Device

FIRST_WITH_DEPENDENT_LAUNCHES = 90
LAUNCH: dict[str, Any] = {"launch_pdl": True}  # the compiler's option


def has_dependent_launches(device: Device) -> bool:
    """Whether a launch may begin while the one before it ends."""
    return not device.is_amd and int(device.architecture) >= FIRST_WITH_DEPENDENT_LAUNCHES
