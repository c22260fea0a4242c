"""Dependent launches (CUDA's programmatic dependent launch): one begins while the launch before it ends.

Such a launch says at once that the next one may begin too, brings into the cache what no launch before it writes, and then
waits for what they wrote.  It writes nothing before that, so that launches end in their order.
"""

from typing import Any

import triton
import triton.language as tl

from backends.triton.gemm.device import Device

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201

FIRST_WITH_DEPENDENT_LAUNCHES = 90
LAUNCH: dict[str, Any] = {"launch_pdl": True}  # the compiler's option
LINE_BITS = tl.constexpr(1024)  # of the last-level cache


def has_dependent_launches(device: Device) -> bool:
    """Whether a launch may begin while the one before it ends."""
    return not device.is_amd and int(device.architecture) >= FIRST_WITH_DEPENDENT_LAUNCHES


@triton.jit
def brought_near(pointers, wanted):
    """Have lines of memory come into the last-level cache, where ``wanted``; nothing waits for them."""
    tl.inline_asm_elementwise(
        "{.reg .pred p; setp.ne.s32 p, $2, 0; @p prefetch.global.L2 [$1]; mov.b32 $0, 0;}",
        "=r,l,r",
        [pointers, wanted.to(tl.int32)],
        tl.int32,
        False,
        1,
    )
