"""The E8M0 scales of mxfp4 weights: which of them a kernel can take, and which none can.

A kernel multiplies in bf16 and adds up in fp32.  The lighter of two conversions has numbers at 2^-64 of what they are worth:
its products stay normal in fp32 where those of the numbers themselves are above 2^-62, and scales of 2^-32 leave room for that.
The full one has them as they are, exactly, as long as every element of a block is a normal number of bf16: its scales go from
2^-125 (0.5 is the least element) to 2^125 (6 is the largest), or are NaN, which makes everything NaN that it touches.
"""

from typing import NamedTuple

import torch

from suite.errors import UsageError

BIAS = 127
NAN = 0xFF
NEUTRAL = BIAS  # for a block of zeros, which are zeros at any scale: quantisers give them the smallest
PER_BLOCK = 32

LIGHT = range(BIAS - 32, BIAS + 64 + 1)
FULL = range(BIAS - 125, BIAS + 125 + 1)


class Exponents(NamedTuple):
    """The smallest and the largest code of scales that are not NaN, and whether there is one that is."""

    low: int
    high: int
    nan: bool

    @property
    def need_full(self) -> bool:
        """Whether the light conversion would give other numbers."""
        return self.nan or self.low not in LIGHT or self.high not in LIGHT

    def check(self) -> None:
        """Raise ``UsageError`` for scales that no conversion here takes."""
        if self.low in FULL and self.high in FULL:
            return
        given, taken = _written(self.low, self.high), _written(FULL[0], FULL[-1])
        raise UsageError(
            f"mxfp4 weights have scales {given}; this kernel takes {taken}, with which their numbers are normal ones of bf16; "
            "scale the weights, or take implementation library"
        )


def _written(low: int, high: int) -> str:
    return f"from 2^{low - BIAS} to 2^{high - BIAS}"


def neutral(codes: torch.Tensor, elements: torch.Tensor) -> torch.Tensor:
    """Scales (uint8, rows x blocks) with those of blocks of zeros made neutral; ``elements`` are codes (uint8, rows x k)."""
    zeros = ((elements & 0x7) == 0).view(*codes.shape, PER_BLOCK).all(-1)
    return codes.masked_fill(zeros & (codes != NAN), NEUTRAL)


def extremes(codes: torch.Tensor) -> torch.Tensor:
    """Low, high and NaN of scales (uint8), as three numbers on their device."""
    nan = codes == NAN
    held = codes.masked_fill(nan, NEUTRAL)
    return torch.stack((held.amin(), held.amax(), nan.any().to(torch.uint8)))


def together(parts: list[torch.Tensor]) -> Exponents:
    """Of all parts; waits for the device."""
    seen = torch.stack(parts)
    return Exponents(int(seen[:, 0].amin()), int(seen[:, 1].amax()), bool(seen[:, 2].any()))
