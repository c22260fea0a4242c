"""Formats that are computed on another unit: fp32 by nine bf16 products, fp64 by int8 slices (Ozaki's scheme), and on a CPU
all that is stored in fewer bits than it has products for.

What the first two ask of a machine is NVIDIA's figure for cuBLAS, which alone offers them.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from suite.case import Workload
from suite.hardware.spec import is_pipe
from suite.work import Work

NATIVE = "none"
KIB, MIB, GIB = 2**10, 2**20, 2**30


class Emulation(NamedTuple):
    """``format`` is what is computed, ``unit`` the peak of the unit that multiplies, ``products`` its products for each."""

    format: str
    unit: str
    products: int

    @property
    def pipe(self) -> str:
        """The peak that applies to what is computed: the unit's over the number of products."""
        return f"{self.unit}x{self.products}"


# cuBLAS cuts fp64 into slices of 8 bits with a common sign bit, and takes as many mantissa bits as keep the accuracy of fp64:
# not under its own 53, and up to 79, beyond which it multiplies in fp64 (cuBLAS documentation, "Fixed-Point").
FP64_BITS = 53
MANTISSA_BITS = 79

# On a CPU torch multiplies these as they are stored, if at all, and XLA converts those to f32.
AS_STORED_ON_A_CPU = ("fp64", "fp32", "tf32", "bf16", "fp16", "int8")
WIDENED_BY_XLA = ("bf16", "fp16", "fp8_e4m3")
WEIGHTS_IN_FP32 = ("w8a16", "w4a16")  # by torch's own kernels, in registers
WIDE_ON_A_CPU = "fp32"


def pipe_on_a_cpu(backend: str, workload: Workload) -> str | None:
    """The unit that multiplies a product on a CPU where the numbers are converted first; ``None`` where they are not.

    Plans and results go by it alike.  ``bf16`` is that of bf16 copies: a CPU without bf16 multiplies those in fp32, at whose
    rate its peak for bf16 stands.
    """
    if backend == "xla":
        return WIDE_ON_A_CPU if workload.format in WIDENED_BY_XLA else None
    if workload.format in WEIGHTS_IN_FP32:
        return WIDE_ON_A_CPU
    shifted = workload.format == "int8" and dict(workload.semantics).get("zero_point")
    return "bf16" if shifted or workload.format not in AS_STORED_ON_A_CPU else None


def slices(mantissa_bits: int) -> int:
    """How many slices hold so many mantissa bits ("Representation and Mappings" there)."""
    return -(-(mantissa_bits + 1) // 8)


def slice_products(mantissa_bits: int) -> int:
    """Products of slices for one product of fp64: 28 at 53 to 55 bits, 55 at 72 to 79.

    The pairs of slices whose product reaches the bits that are kept, s (s + 1) / 2 of s (Ootomo, Ozaki and Yokota 2024,
    "DGEMM on integer matrix multiplication unit", the scheme that cuBLAS says it follows).
    """
    count = slices(mantissa_bits)
    return count * (count + 1) // 2


# fp32 is the sum of three bf16 (cuBLAS documentation, "BF16x9").  Of int8 the least that a product of fp64 takes, by which
# it is planned; how many it took is read back.
EMULATIONS = {"bf16x9": Emulation("fp32", "bf16", 9), "int8": Emulation("fp64", "int8", slice_products(FP64_BITS))}
# In the description of a kernel: the bits that it kept; the unit that multiplied, where it is not the format's; the bytes that
# it writes within a launch and reads again, and all else that it is known to move, where that is more than each operand once.
RETAINED_BITS, EXECUTED_PIPE = "retained_mantissa_bits", "executed_pipe"
PASSING_BYTES, TRAFFIC_BYTES = "passing_bytes", "traffic_bytes"

SLICES = slices(MANTISSA_BITS)
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


def as_executed(work: Work, description: Mapping[str, Any]) -> Work:
    """The work as a kernel says that it did it: on another unit, with as many products as it took, with all it moved."""
    pipe, moved_bytes = description.get(EXECUTED_PIPE), traffic_bytes(work.compulsory_bytes, description)
    if isinstance(pipe, str) and is_pipe(pipe):
        work = replace(work, pipe=pipe)
    if moved_bytes is not None:
        work = replace(work, traffic_bytes=moved_bytes)
    bits = description.get(RETAINED_BITS)
    planned = EMULATIONS["int8"]
    if work.pipe != planned.pipe or type(bits) is not int or bits <= 0:
        return work
    return replace(work, pipe=planned._replace(products=slice_products(bits)).pipe)


def traffic_bytes(compulsory_bytes: int, description: Mapping[str, Any]) -> int | None:
    """What a kernel says that it moves; ``None`` where that is not more than each operand once."""
    passing, moved = description.get(PASSING_BYTES), description.get(TRAFFIC_BYTES)
    least = moved if type(moved) is int and moved > compulsory_bytes else compulsory_bytes
    found = least + 2 * passing if type(passing) is int else least
    return found if found > compulsory_bytes else None


def _padded(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
