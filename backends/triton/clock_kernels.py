"""Kernels that read a multiprocessor's counters, for each vendor's instruction set.

Each program writes one row: the unit that it ran on, the unit's cycles, nanoseconds of a timer that all units share.
"""

from typing import Any, NamedTuple

import triton
import triton.language as tl

FIELDS = 3  # unit, cycles, nanoseconds
# AMD's compute chips (CDNA), and whether they are made of several dies with an id each (XCC).
CDNA = {"gfx908": False, "gfx90a": False, "gfx942": True, "gfx950": True}


@triton.jit
def read_nvidia(out_ptr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, D103
    unit = tl.inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    cycles = tl.inline_asm_elementwise("mov.u64 $0, %clock64;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)
    nanoseconds = tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)
    row_ptr = out_ptr + tl.program_id(0) * 3
    tl.store(row_ptr, unit.to(tl.int64))
    tl.store(row_ptr + 1, cycles)
    tl.store(row_ptr + 2, nanoseconds)


# s_memtime counts the shader clock, s_memrealtime a reference of 100 MHz on every gfx9 chip (LLVM's libc for AMD GPUs has
# the same figure).  Bits 8 to 15 of HW_ID are a unit's number in its array, its array and its engine.
@triton.jit  # type: ignore[untyped-decorator]
def read_cdna(out_ptr, HAS_XCC: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, D103, N803
    unit = tl.inline_asm_elementwise(
        "s_getreg_b32 $0, hwreg(HW_REG_HW_ID, 8, 8)", "=s", [], dtype=tl.int32, is_pure=False, pack=1
    ).to(tl.int64)
    if HAS_XCC:
        die = tl.inline_asm_elementwise(
            "s_getreg_b32 $0, hwreg(HW_REG_XCC_ID)", "=s", [], dtype=tl.int32, is_pure=False, pack=1
        )
        unit += die.to(tl.int64) * 256
    cycles = tl.inline_asm_elementwise("s_memtime $0\ns_waitcnt lgkmcnt(0)", "=s", [], dtype=tl.int64, is_pure=False, pack=1)
    ticks = tl.inline_asm_elementwise("s_memrealtime $0\ns_waitcnt lgkmcnt(0)", "=s", [], dtype=tl.int64, is_pure=False, pack=1)
    row_ptr = out_ptr + tl.program_id(0) * 3
    tl.store(row_ptr, unit)
    tl.store(row_ptr + 1, cycles)
    tl.store(row_ptr + 2, ticks * 10)


class ClockKernel(NamedTuple):
    """A kernel and the constants that it is compiled with."""

    kernel: Any
    constants: dict[str, Any]


def clock_kernel(amd_target: str | None) -> ClockKernel:
    """The kernel of NVIDIA's devices, or of an AMD target such as ``gfx942``; raises ``RuntimeError`` where there is none."""
    if amd_target is None:
        return ClockKernel(read_nvidia, {})
    if amd_target in CDNA:
        return ClockKernel(read_cdna, {"HAS_XCC": CDNA[amd_target]})
    # RDNA chips count cycles in 20 bits, which start again every half millisecond.
    raise RuntimeError(f"{amd_target} has no cycle counter that is known to last a window; known are {', '.join(CDNA)}")
