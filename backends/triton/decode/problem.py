"""One decoding step as the kernels see it: sizes, the cache's format and scales, and what no kernel here takes."""

import math
from typing import NamedTuple

from backends.triton.gemm.device import Device

LOG2_E = math.log2(math.e)
NUMBER_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8_e4m3": 1, "int8": 1}
EIGHT_BITS = ("fp8_e4m3", "int8")
SCALES = ("none", "tensor", "token")  # none for 8-bit numbers would be a scale of 1: they always have one
LARGEST_PAGE, LARGEST_Q_LEN, LARGEST_WIDTH = 128, 8, 512


class Problem(NamedTuple):
    """O = softmax(scale Q K^T) V of ``q_len`` new tokens a sequence, the last of which stands at the sequence's last key.

    Keys have ``width`` columns and ``tail`` more, values ``width``; with ``shared_values`` (MLA) the values are the first
    ``width`` columns of the keys.  Query head ``h`` reads KV head ``h // (q_heads / kv_heads)``.  ``scales`` are of the cache:
    one for each token and KV head of K and of V, or one for each tensor.
    """

    format: str
    q_heads: int
    kv_heads: int
    width: int
    page_size: int
    q_len: int = 1
    tail: int = 0
    shared_values: bool = False
    scales: str = "none"
    scale: float | None = None  # 1 / sqrt(width + tail) where none is given

    @property
    def group(self) -> int:
        return self.q_heads // self.kv_heads

    @property
    def rows(self) -> int:
        """Queries that share a KV head."""
        return self.group * self.q_len

    @property
    def has_eight_bits(self) -> bool:
        return self.format in EIGHT_BITS

    @property
    def scale_log2(self) -> float:
        """The factor of the scores in an exponential of base 2."""
        return LOG2_E * ((self.width + self.tail) ** -0.5 if self.scale is None else self.scale)


def reason(problem: Problem, device: Device) -> str | None:
    """Why no kernel here computes it on a device, with the limit; ``None`` where one does."""
    p = problem
    if p.format not in NUMBER_BYTES:
        return f"a cache in {p.format} is not decoded by Triton here; choose from: {', '.join(NUMBER_BYTES)}"
    if p.has_eight_bits == (p.scales == "none") or p.scales not in SCALES:
        return f"a cache in {p.format} with scales '{p.scales}'; 8-bit numbers have tensor or token scales, others none"
    if p.format == "fp8_e4m3" and not device.is_amd and int(device.architecture) < 89:
        return f"{device.name} has no instruction for fp8_e4m3, which came with sm_89; take int8 there"
    if p.kv_heads < 1 or p.q_heads % p.kv_heads:
        return f"{p.q_heads} query heads are no multiple of {p.kv_heads} KV heads"
    if not 1 <= p.q_len <= LARGEST_Q_LEN:
        return f"q_len={p.q_len}; a step decodes 1 to {LARGEST_Q_LEN} tokens a sequence, more are a prefill"
    if not _is_power(p.page_size) or p.page_size > LARGEST_PAGE:
        return f"page_size={p.page_size}; pages hold a power of two of tokens, up to {LARGEST_PAGE}"
    widths = (p.width, *([p.tail] if p.tail else []))
    if not all(_is_power(each) and 16 <= each <= LARGEST_WIDTH for each in widths):
        return f"heads of {' + '.join(map(str, widths))} columns; each part is a power of two from 16 to {LARGEST_WIDTH}"
    if p.tail and not p.shared_values:
        return f"keys with {p.tail} columns behind the first {p.width} have shared values here (MLA)"
    return None


def _is_power(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
