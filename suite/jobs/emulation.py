"""Formats that a library computes on another unit: fp32 by nine bf16 products, fp64 by int8 slices (Ozaki's scheme).

What they ask of a machine is NVIDIA's figure for cuBLAS, which alone offers them.
"""

from typing import NamedTuple

NATIVE = "none"
KIB, MIB, GIB = 2**10, 2**20, 2**30


class Emulation(NamedTuple):
    """``format`` is what is computed, ``pipe`` the peak of the unit that multiplies."""

    format: str
    pipe: str


EMULATIONS = {"bf16x9": Emulation("fp32", "bf16"), "int8": Emulation("fp64", "int8")}

# cuBLAS takes up to 79 mantissa bits to keep the accuracy of fp64 (its default), in slices of 8 with a common sign bit.
MANTISSA_BITS = 79
SLICES = -(-(MANTISSA_BITS + 1) // 8)
BF16X9_WORKSPACE_BYTES = 32 * MIB  # what torch gives cuBLAS on the devices that have the mode


def workspace_bytes(name: str, m: int, n: int, k: int) -> int:
    """Device memory that one product needs beside its operands, so that the library allocates none itself.

    For ``int8`` the upper bound of the cuBLAS documentation, "Fixed-Point Workspace Requirements": both operands in
    slices, a 32-bit sum a slice, the search for the bits that are needed; a quarter more, and 128 MiB.
    """
    if name == "bf16x9":
        return BF16X9_WORKSPACE_BYTES
    rows, columns, depth = _padded(m, 1024), _padded(n, 1024), _padded(k, 128)
    slices = (rows + columns) * depth * SLICES + 4 * (rows + columns)
    sums = min(4 * rows * columns * SLICES, 4 * GIB) * -(-k // 8192)
    search = 4 * ((m + n) * -(-k // 64) + m * n)
    return max(slices + sums, search) * 5 // 4 + 128 * MIB


def _padded(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
