"""Numbers narrower than a byte, packed along the last axis in order of growing address and bit.

Four bits: two a byte, the even one in the low half.  So are torch's ``float4_e2m1fn_x2``, the fp4 operands of PTX and CDNA4,
and the words of eight that kernels with int4 weights read.
Six bits: four in three bytes, without gaps.  So are they in global memory behind a tensor map of type ``16U6_ALIGN16B`` (CUDA
driver API, cuTensorMapEncodeTiled: the gaps come on the way to shared memory), and in the registers of CDNA4.
"""

import torch


def packed_columns(columns: int, bits: int) -> int:
    """Bytes that ``columns`` numbers of 4, 6 or 8 bits take."""
    assert columns * bits % 8 == 0, f"{columns} numbers of {bits} bits do not fill whole bytes"
    return columns * bits // 8


def pack(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """Codes (uint8, one a byte, ... x n) to bytes (uint8, ... x n * bits / 8)."""
    packed_columns(codes.shape[-1], bits)
    if bits == 8:
        return codes
    if bits == 4:
        return codes[..., 0::2] | (codes[..., 1::2] << 4)
    assert bits == 6, f"no packing for {bits} bits"
    a, b, c, d = (codes[..., i::4] for i in range(4))
    return torch.stack((a | (b << 6), (b >> 2) | (c << 4), (c >> 4) | (d << 2)), dim=-1).flatten(-2)


def unpack(packed: torch.Tensor, bits: int) -> torch.Tensor:
    """The inverse of ``pack``: bytes (uint8) to codes, one a byte."""
    if bits == 8:
        return packed
    if bits == 4:
        return torch.stack((packed & 0x0F, packed >> 4), dim=-1).flatten(-2)
    assert bits == 6, f"no packing for {bits} bits"
    first, second, third = (packed[..., i::3] for i in range(3))
    codes = (first & 0x3F, (first >> 6) | ((second & 0x0F) << 2), (second >> 4) | ((third & 0x03) << 4), third >> 2)
    return torch.stack(codes, dim=-1).flatten(-2)
