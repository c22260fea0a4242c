"""One streamed product as the kernel sees it: its sizes, what stands before and behind it, and what no kernel here takes."""

from typing import NamedTuple

from backends.triton.gemm.device import Device
from backends.triton.gemm.port import LARGEST

NUMBER_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
PLAIN, RESIDUAL, SWIGLU, ROTATED = "plain", "residual", "swiglu", "rotated"
ENDS = (PLAIN, RESIDUAL, SWIGLU, ROTATED)
MOST_ROWS = 64
WIDTH_STEP = 16  # of what is summed over: whole loads of 16 bytes, whatever the format
SMALLEST_HALF = 8  # of a head: rows of the smallest tile that turn with as many others


class Problem(NamedTuple):
    """Y (m x n) = X (m x k) W^T of weights W, which are n x k; everything is in ``format``, sums are in fp32.

    With ``normed`` X stands behind a norm of which the launch before it did a part, see ``norm``.  ``end`` is what becomes of
    Y: written as it is; added to a residual (m x n), and made ready for the norm behind it; ``swiglu``, silu of its first half
    of columns times its second (m x n / 2); or ``rotated``, heads of q, k and v of which q and k turn with the position, q is
    written, k and v go to the newest token's place in a paged cache.
    """

    format: str
    m: int
    n: int
    k: int
    end: str = PLAIN
    normed: bool = False
    q_heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    page_size: int = 0

    @property
    def pairs(self) -> int:
        """How far apart rows of W are that are needed together; 0 where each stands alone."""
        return {SWIGLU: self.n // 2, ROTATED: self.head_dim // 2}.get(self.end, 0)

    @property
    def number_bytes(self) -> int:
        return NUMBER_BYTES[self.format]


def reason(problem: Problem, device: Device) -> str | None:
    """Why no kernel here computes it on a device, with the limit; ``None`` where one does."""
    p = problem
    assert p.end in ENDS, p.end
    if device.unknown:
        return device.unknown
    if p.format not in NUMBER_BYTES:
        return f"streamed products are in {', '.join(NUMBER_BYTES)}, not in {p.format}"
    if not 1 <= p.m <= MOST_ROWS:
        return f"roofbench's streaming kernels take up to {MOST_ROWS} rows (sequences), not {p.m}; take the library"
    if p.k % WIDTH_STEP:
        return f"streamed products sum over multiples of {WIDTH_STEP} numbers, not {p.k}; take the library"
    if max(p.n, p.k) > LARGEST:
        return f"streamed products have sizes up to {LARGEST}, not {max(p.n, p.k)}"
    half = p.head_dim // 2
    if p.end == ROTATED and (half & (half - 1) or half < SMALLEST_HALF or p.head_dim % 2):
        return f"heads of {p.head_dim} columns; a power of two from {2 * SMALLEST_HALF} on is rotated here"
    return None
