"""OCP microscaling: blocks of 32 along K with a power of two as their scale.

Source: OCP Microscaling Formats (MX) Specification v1.0
(https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf).
Section 6.3: the scale is the largest power of two that is not above the block's largest magnitude, divided by the largest power
of two of the element type; elements are rounded to the nearest, ties to even, and what passes the largest number is clamped to
it.  Section 5.4.1: E8M0 holds 2^-127 to 2^127 in a byte biased by 127; 0xFF is NaN, zero there is none.  Section 5.1: a NaN
scale makes the whole block NaN.

What the specification leaves open is done so: a block of zeros, and one whose scale would be below 2^-127, has scale 2^-127
(code 0); one with NaN or an infinity, or whose scale would be above 2^127 (float64 only), has scale NaN and elements 0.
"""

from dataclasses import dataclass

import torch

from backends.torch.quantise.blocks import Extremes
from backends.torch.quantise.elements import FLOAT64_BIAS, FLOAT64_MANTISSA_BITS, SmallFloat
from backends.torch.quantise.scaling import ErrorBound, Scales

E8M0_BIAS = 127
E8M0_NAN = 0xFF


@dataclass(frozen=True, slots=True)
class PowerOfTwoScaling:
    """See ``scaling.Scaling``."""

    element: SmallFloat
    dtype: torch.dtype = torch.float8_e8m0fnu
    zero_point_dtype: torch.dtype | None = None

    @property
    def bound(self) -> ErrorBound:
        """The largest magnitude lies between 2^emax and 2^(emax + 1) scales, and is clamped to the largest number: for E4M3,
        whose last code is NaN, that can cost more than rounding does.
        """
        element, half_step = self.element, self.element.smallest / 2
        clamped = 1 - element.largest / 2.0 ** (element.largest_exponent + 1)
        return ErrorBound(
            roundoff=max(element.roundoff, clamped),
            step=half_step / 2.0**element.largest_exponent,
            floor=half_step * 2.0**-E8M0_BIAS,
        )

    def tensor_scale(self, whole: Extremes) -> None:
        return None

    def choose(self, blocks: Extremes, tensor_scale: torch.Tensor | None) -> Scales:
        exponent = floor_log2(blocks.magnitude) - self.element.largest_exponent
        codes = (exponent + E8M0_BIAS).clamp_(0, E8M0_NAN)
        codes.masked_fill_(~blocks.magnitude.isfinite(), E8M0_NAN)
        return Scales(codes.to(torch.uint8).view(self.dtype))

    def steps(self, stored: torch.Tensor, tensor_scale: torch.Tensor | None) -> torch.Tensor:
        codes = stored.view(torch.uint8).to(torch.int64)
        powers = (codes + (FLOAT64_BIAS - E8M0_BIAS) << FLOAT64_MANTISSA_BITS).view(torch.float64)
        return powers.masked_fill(codes == E8M0_NAN, float("nan"))


def floor_log2(magnitude: torch.Tensor) -> torch.Tensor:
    """Of positive float64 numbers, in int64, by their bits: a logarithm would err next to powers of two.

    Zero and float64's subnormal numbers give -1023.
    """
    return (magnitude.view(torch.int64) >> FLOAT64_MANTISSA_BITS) - FLOAT64_BIAS
