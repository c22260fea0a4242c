"""Small floating-point numbers: what each bit pattern is worth, and rounding to the nearest of them.

Sources, both at https://www.opencompute.org/documents: OCP 8-bit Floating Point Specification (OFP8) revision 1.0, section 5
(E4M3 has no infinity and one NaN a sign, E5M2 follows IEEE 754), and OCP Microscaling Formats (MX) Specification v1.0, section
5.3 (E3M2, E2M3 and E2M1 have neither).  FNUZ, of AMD's gfx940 to gfx942, is by the HIP documentation, "Low precision floating
point types", and Noune et al., "8-bit Numerical Formats for Deep Neural Networks" (arXiv 2206.02915): no infinity, and the code
of -0 is the only NaN, so that a bias larger by one leaves as many numbers.
Where MX leaves NaN to the implementation, it becomes the largest positive number, as in PTX's ``cvt.satfinite``.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import torch

FLOAT64_BIAS = 1023
FLOAT64_MANTISSA_BITS = 52


class Element(Hashable, Protocol):
    """A type of stored number with at most 8 bits.  A code is its bit pattern, in the low bits of a uint8."""

    @property
    def name(self) -> str: ...

    @property
    def bits(self) -> int: ...

    @property
    def dtype(self) -> torch.dtype:
        """Of the buffer that holds the packed numbers."""
        ...

    def value(self, code: int) -> float: ...


@dataclass(frozen=True, slots=True)
class SmallFloat:
    """A sign, ``exponent_bits`` and ``mantissa_bits``; subnormal where the exponent field is 0.

    ``largest_code`` is the code of the largest number; ``infinity`` and ``nan`` are those of the positive ones, where the type
    has them.  One whose ``nan`` is the sign alone has no -0.
    """

    name: str
    dtype: torch.dtype
    exponent_bits: int
    mantissa_bits: int
    bias: int
    largest_code: int
    infinity: int | None = None
    nan: int | None = None

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def largest(self) -> float:
        return self._magnitude(self.largest_code)

    @property
    def largest_exponent(self) -> int:
        """That of the largest power of two, ``emax`` in the MX specification."""
        return (self.largest_code >> self.mantissa_bits) - self.bias

    @property
    def smallest(self) -> float:
        """The smallest positive number, which is also the step between subnormal ones."""
        return self._magnitude(1)

    @property
    def roundoff(self) -> float:
        """The largest error of rounding a number of the normal range, relative to it."""
        return 2.0 ** -(self.mantissa_bits + 1)

    @property
    def has_negative_zero(self) -> bool:
        return self.nan != 1 << (self.bits - 1)

    def value(self, code: int) -> float:
        """What one bit pattern is worth."""
        if code == self.nan:
            return float("nan")
        sign = -1.0 if code >> (self.bits - 1) else 1.0
        magnitude = code & ((1 << (self.bits - 1)) - 1)
        if magnitude <= self.largest_code:
            return sign * self._magnitude(magnitude)
        return sign * float("inf") if magnitude == self.infinity else float("nan")

    def encode(self, values: torch.Tensor, *, saturate: bool = True) -> torch.Tensor:
        """The codes (uint8, same shape) of the nearest numbers to float64 ``values``, ties to the even code.

        What rounds past the largest number becomes the largest number, infinities included (OFP8's saturating conversion).
        With ``saturate=False`` it becomes infinity, or NaN in a type without one; a type that has neither always saturates.
        The result is the same on every device: only exact operations and one rounding are used.
        """
        assert values.dtype == torch.float64, f"encode takes float64, not {values.dtype}"
        overflow = self.infinity if self.infinity is not None else self.nan
        last_code = self.largest_code if saturate or overflow is None else overflow
        magnitude = values.abs().clamp_(max=self._magnitude(last_code))
        first = FLOAT64_BIAS + 1 - self.bias
        binade = (magnitude.view(torch.int64) >> FLOAT64_MANTISSA_BITS).clamp_(first, FLOAT64_BIAS + self.largest_exponent)
        # Added to a number whose last bit is worth one step of this binade, a magnitude is rounded to whole steps; the bits
        # that it adds are their count.  The count goes on from the binade's first code: a carry lands on the next binade's.
        anchor = (binade + (FLOAT64_MANTISSA_BITS - self.mantissa_bits)) << FLOAT64_MANTISSA_BITS
        codes = magnitude.add_(anchor.view(torch.float64)).view(torch.int64).sub_(anchor)
        codes += binade.sub_(first) << self.mantissa_bits
        signs = torch.signbit(values).to(torch.uint8) << (self.bits - 1)
        if not self.has_negative_zero:
            signs.masked_fill_((codes == 0) | (codes > self.largest_code), 0)
        for_nan = self.largest_code if self.nan is None else self.nan
        return codes.to(torch.uint8).add_(signs).masked_fill_(values.isnan(), for_nan)

    def _magnitude(self, code: int) -> float:
        """What a code without its sign is worth by its exponent and mantissa, special or not."""
        exponent, mantissa = code >> self.mantissa_bits, code & ((1 << self.mantissa_bits) - 1)
        if exponent == 0:
            return mantissa * 2.0 ** (1 - self.bias - self.mantissa_bits)
        return (1 + mantissa * 2.0**-self.mantissa_bits) * 2.0 ** (exponent - self.bias)


def decode(element: Element, codes: torch.Tensor) -> torch.Tensor:
    """What codes (uint8) are worth, in float64, exactly."""
    return _values(element, codes.device)[codes.to(torch.int64)]


@cache
def _values(element: Element, device: torch.device) -> torch.Tensor:
    worth = [element.value(code) for code in range(1 << element.bits)]
    return torch.tensor(worth, dtype=torch.float64, device=device)


E4M3 = SmallFloat("e4m3", torch.float8_e4m3fn, 4, 3, bias=7, largest_code=0x7E, nan=0x7F)
E5M2 = SmallFloat("e5m2", torch.float8_e5m2, 5, 2, bias=15, largest_code=0x7B, infinity=0x7C, nan=0x7E)
E2M3 = SmallFloat("e2m3", torch.uint8, 2, 3, bias=1, largest_code=0x1F)
E3M2 = SmallFloat("e3m2", torch.uint8, 3, 2, bias=3, largest_code=0x1F)
E2M1 = SmallFloat("e2m1", torch.float4_e2m1fn_x2, 2, 1, bias=1, largest_code=0x07)
E4M3_FNUZ = SmallFloat("e4m3fnuz", torch.float8_e4m3fnuz, 4, 3, bias=8, largest_code=0x7F, nan=0x80)
E5M2_FNUZ = SmallFloat("e5m2fnuz", torch.float8_e5m2fnuz, 5, 2, bias=16, largest_code=0x7F, nan=0x80)
