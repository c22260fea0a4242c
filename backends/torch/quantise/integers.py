"""Integers of 8 and 4 bits, symmetric or with a zero point.

Symmetric: the scale carries the largest magnitude of the block to 127 or 7; -128 and -8 are not used, so that every number has
its negative.  With a zero point: x = (code - zero point) * scale, where the scale spreads the block's range, widened to hold
zero, over all codes, and the zero point is the code of zero itself.  Codes are round(x / scale) + zero point, ties to even,
clamped.  Source: ONNX operators QuantizeLinear and DynamicQuantizeLinear, and Jacob and others, "Quantization and Training of
Neural Networks for Efficient Integer-Arithmetic-Only Inference" (arXiv 1712.05877), section 2.1.

Scales are float32 where integers are multiplied; weight-only formats have them in bfloat16, the type of the activations that
they are multiplied with.  A block of zeros has scale 1, one with NaN or an infinity scale NaN and zero point 0.
"""

from dataclasses import dataclass

import torch

from backends.torch.quantise.blocks import Extremes
from backends.torch.quantise.scaling import SMALLEST_SCALE, ErrorBound, Scales, rounded_scale

ROUNDOFF = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8}


@dataclass(frozen=True, slots=True)
class Integer:
    """Two's complement where ``lowest`` is negative; ``lowest`` to ``highest`` are the numbers in use."""

    name: str
    dtype: torch.dtype
    bits: int
    lowest: int
    highest: int

    def value(self, code: int) -> float:
        """What one bit pattern is worth."""
        return float(code - (1 << self.bits) if self.lowest < 0 and code >> (self.bits - 1) else code)

    def encode(self, values: torch.Tensor, shift: torch.Tensor | None = None) -> torch.Tensor:
        """Codes (uint8) of finite float64 ``values`` rounded to the nearest, ties to even, then shifted and clamped."""
        assert values.dtype == torch.float64, f"encode takes float64, not {values.dtype}"
        rounded = values.round()
        if shift is not None:
            rounded += shift
        numbers = rounded.clamp_(self.lowest, self.highest).to(torch.int16)
        return (numbers & ((1 << self.bits) - 1)).to(torch.uint8)


INT8 = Integer("int8", torch.int8, 8, -127, 127)
INT8_SHIFTED = Integer("int8", torch.int8, 8, -128, 127)
INT4 = Integer("int4", torch.uint8, 4, -7, 7)
UINT4 = Integer("uint4", torch.uint8, 4, 0, 15)


@dataclass(frozen=True, slots=True)
class SymmetricScaling:
    """See ``scaling.Scaling``."""

    element: Integer
    dtype: torch.dtype
    zero_point_dtype: torch.dtype | None = None

    @property
    def bound(self) -> ErrorBound:
        return ErrorBound(
            roundoff=0.0,
            step=0.5 / self.element.highest * (1 + ROUNDOFF[self.dtype]),
            floor=0.5 * SMALLEST_SCALE,
        )

    def tensor_scale(self, whole: Extremes) -> None:
        return None

    def choose(self, blocks: Extremes, tensor_scale: torch.Tensor | None) -> Scales:
        return Scales(rounded_scale(blocks.magnitude / self.element.highest, self.dtype))

    def steps(self, stored: torch.Tensor, tensor_scale: torch.Tensor | None) -> torch.Tensor:
        return stored.to(torch.float64)


@dataclass(frozen=True, slots=True)
class ShiftedScaling:
    """See ``scaling.Scaling``."""

    element: Integer
    dtype: torch.dtype
    zero_point_dtype: torch.dtype | None

    @property
    def bound(self) -> ErrorBound:
        """By the block's largest magnitude, of which its range is at most twice; numbers of one sign are at half of this."""
        levels, scale_error = self.element.highest - self.element.lowest, ROUNDOFF[self.dtype]
        return ErrorBound(
            roundoff=0.0,
            step=(0.5 + levels * scale_error) * 2 / levels * (1 + scale_error),
            floor=0.5 * SMALLEST_SCALE,
        )

    def tensor_scale(self, whole: Extremes) -> None:
        return None

    def choose(self, blocks: Extremes, tensor_scale: torch.Tensor | None) -> Scales:
        low, high = blocks.low.clamp(max=0.0), blocks.high.clamp(min=0.0)
        levels = self.element.highest - self.element.lowest
        scales = rounded_scale((high - low) / levels, self.dtype)
        zero_points = self.element.lowest + (-low / scales.to(torch.float64)).round_()
        zero_points = zero_points.masked_fill_(scales.isnan(), 0.0).clamp_(self.element.lowest, self.element.highest)
        return Scales(scales, zero_points.to(self.zero_point_dtype))

    def steps(self, stored: torch.Tensor, tensor_scale: torch.Tensor | None) -> torch.Tensor:
        return stored.to(torch.float64)
