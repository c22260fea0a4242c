"""One attention as the kernels see it: sizes, formats, and which keys a query sees."""

import math
from typing import NamedTuple

DESCRIPTOR_ALIGNMENT_BYTES = 16  # of every step that a TMA descriptor takes
LOG2_E = math.log2(math.e)


class Numbers(NamedTuple):
    """How a format is stored, by Triton's names; ``operand_bytes`` of one number of Q, K or V."""

    operand: str
    output: str
    operand_bytes: int


NUMBERS = {
    "fp32": Numbers("fp32", "fp32", 4),
    "bf16": Numbers("bf16", "bf16", 2),
    "fp16": Numbers("fp16", "fp16", 2),
    "fp8_e4m3": Numbers("fp8e4nv", "bf16", 1),
}


class Mask(NamedTuple):
    """A query ``i`` sees the keys ``j`` with ``first <= j - i <= last``; ``None`` is no bound."""

    first: int | None = None
    last: int | None = None


FULL = Mask()


def causal(q_len: int, kv_len: int, *, window: int | None = None, bottom_right: bool = True) -> Mask:
    """No key behind the query, and of those before it the latest ``window``, itself included.

    With ``bottom_right`` the last query stands at the last key, as in FlashAttention; else the first at the first, as in SDPA.
    """
    last = kv_len - q_len if bottom_right else 0
    return Mask(None if window is None else last - window + 1, last)


class Problem(NamedTuple):
    """O = softmax(scale Q K^T) V for ``batch`` sequences; Q and K have ``qk_dim`` columns a head, V and O ``v_dim``.

    ``q_heads`` is a multiple of ``kv_heads``: query head ``h`` reads head ``h // (q_heads / kv_heads)``.
    """

    format: str
    batch: int
    q_heads: int
    kv_heads: int
    q_len: int
    kv_len: int
    qk_dim: int
    v_dim: int
    mask: Mask = FULL
    scale: float | None = None  # 1 / sqrt(qk_dim) where none is given
    v_transposed: bool = False

    @property
    def numbers(self) -> Numbers:
        return NUMBERS[self.format]

    @property
    def scale_log2(self) -> float:
        """The factor of the scores in an exponential of base 2."""
        return LOG2_E * (self.qk_dim**-0.5 if self.scale is None else self.scale)

    @property
    def group(self) -> int:
        return self.q_heads // self.kv_heads

    @property
    def width(self) -> int:
        """The largest power of two in ``qk_dim``: columns of Q and K in one product."""
        return 1 << (self.qk_dim.bit_length() - 1)

    @property
    def tail(self) -> int:
        """The columns of Q and K that are left."""
        return self.qk_dim - self.width

    @property
    def bounds(self) -> tuple[int, int]:
        """Of the mask, 0 where it has none: the kernels then do not look."""
        return self.mask.first or 0, self.mask.last or 0

    @property
    def pairs(self) -> int:
        """Visible pairs of query and key of one head, exactly."""
        first, last = self.mask
        total = 0
        for i in range(self.q_len):
            low = 0 if first is None else max(0, i + first)
            high = self.kv_len - 1 if last is None else min(self.kv_len - 1, i + last)
            total += max(0, high - low + 1)
        return total

    @property
    def forward_flops(self) -> int:
        return 2 * self.pairs * self.batch * self.q_heads * (self.qk_dim + self.v_dim)

    @property
    def backward_flops(self) -> int:
        return 2 * self.pairs * self.batch * self.q_heads * (3 * self.qk_dim + 2 * self.v_dim)

    @property
    def head_bytes(self) -> int:
        """K and V of one head of one sequence."""
        return self.kv_len * (self.qk_dim + self.v_dim) * self.numbers.operand_bytes
