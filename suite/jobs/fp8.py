"""The two encodings of 8-bit floats: what a format named ``fp8_e4m3`` or ``fp8_e5m2`` is made of depends on the device.

OCP's is what NVIDIA, AMD from gfx950 on, TPUs and CPUs have; AMD's gfx940 to gfx942 multiply FNUZ, whose bias is larger by one
(largest numbers 240 and 57344), without -0 and infinities.  Data in one rounds to other numbers than data in the other.
"""

from collections.abc import Mapping
from typing import Any

OCP, FNUZ = "OCP", "FNUZ"
FP8 = ("fp8_e4m3", "fp8_e5m2")
ENCODING = "fp8_encoding"  # in a kernel's description


def encoding_of(description: Mapping[str, Any]) -> str:
    """Of a kernel's operands; descriptions that do not say are of devices that know OCP's alone."""
    return str(description.get(ENCODING, OCP))
