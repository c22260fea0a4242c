"""Row sums that read a matrix exactly once: the read half of a device's bandwidth calibration."""

from typing import Any

import triton
import triton.language as tl

# 16 KiB in flight a program and warps enough to cover the latency of device memory.
BLOCK = 4096
UNROLL = 4
WARPS = 8


@triton.jit  # type: ignore[untyped-decorator]
def _row_sums(x_ptr, sums_ptr, columns, BLOCK: tl.constexpr, UNROLL: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, N803
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    row_ptr = x_ptr + row * columns
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    whole = columns // BLOCK * BLOCK
    for start in tl.range(0, whole, BLOCK, loop_unroll_factor=UNROLL):
        total += tl.load(row_ptr + start + lanes)
    if whole < columns:
        tail = whole + lanes
        total += tl.load(row_ptr + tail, mask=tail < columns, other=0.0)
    tl.store(sums_ptr + row, tl.sum(total, axis=0))


def row_sums(x_rc: Any, sums_r: Any) -> None:
    """Write the sum of each row of a contiguous float32 matrix (rows x columns) into ``sums_r`` (rows)."""
    rows, columns = x_rc.shape
    _row_sums[(rows,)](x_rc, sums_r, columns, BLOCK=BLOCK, UNROLL=UNROLL, num_warps=WARPS)
