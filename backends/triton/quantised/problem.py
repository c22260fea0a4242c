"""One product of quantised operands as the kernels here see it, and what they cannot have of it."""

from typing import NamedTuple

from backends.triton.gemm.device import Device
from backends.triton.gemm.port import LARGEST

# Numbers along K that a kernel takes at a time: of weights those in 32 words, of fp8 what has one scale, of mxfp8 a block.
STEP = {"w4a16": 128, "mxfp4a16": 128, "w8a16": 64, "fp8_e4m3": 128, "mxfp8_e4m3": 32}
WEIGHT_BITS = {"w4a16": 4, "mxfp4a16": 4, "w8a16": 8}


class Problem(NamedTuple):
    """C[m, n] = A[m, k] W[n, k]^T, both operands stored with K contiguous; C is bf16.

    ``format`` is a rung of the ladder: ``fp8_e4m3`` with scales in blocks (A in 1x128, W in 128x128), ``mxfp8_e4m3``, or bf16
    times weights in ``w4a16`` (``zero_point`` or not), ``w8a16`` or ``mxfp4a16``.
    """

    format: str
    m: int
    n: int
    k: int
    zero_point: bool = False

    @property
    def is_weight_only(self) -> bool:
        return self.format in WEIGHT_BITS

    def refused(self, device: Device) -> str | None:
        """Why no kernel here takes these sizes, or this device; ``None`` where one may."""
        assert self.format in STEP, self.format
        if device.unknown:
            return device.unknown
        step, largest = STEP[self.format], max(self.m, self.n, self.k)
        if largest > LARGEST:
            return f"this kernel takes sizes up to {LARGEST}, not {largest}"
        if self.k % step:
            padded = -(-self.k // step) * step
            return (
                f"this kernel takes {self.format} by {step} numbers along K, and k={self.k} is no multiple; pad K to {padded}"
            )
        if self.format in ("fp8_e4m3", "mxfp8_e4m3") and not device.has_fp8 and not device.is_amd:
            return f"Triton has no fp8_e4m3 for {device.name}"
        return None
