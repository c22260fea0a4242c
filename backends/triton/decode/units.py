"""Scales of values, one a token, taken into weights that are rounded to fp16: in units of the largest there was.

fp16 ends at 6e-8, and a scale can be anything: a weight times its token's scale would vanish where values are small.
"""

import triton
import triton.language as tl

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201

SMALLEST_UNIT = tl.constexpr(1e-30)


@triton.jit
def in_units(scales, unit):
    """A block's scales in units of the largest so far, what sums in the ``unit`` before are multiplied by, and the new unit."""
    now = tl.maximum(unit, tl.max(scales, 0))
    return scales / now, unit / now, now
