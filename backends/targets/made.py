"""A program made ready to be compiled: its configurations in the order in which the product tries them, and its calls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from backends.triton.gemm.call import Call

TORCH_TYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8_e4m3": torch.float8_e4m3fn,
    "int8": torch.int8,
    "int32": torch.int32,
}
Emulation = Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True, slots=True)
class Made:
    """``calls`` of a configuration are what one launch calls, in order; the last one is what is told of.

    With ``first_fitting`` the product passes over configurations that do not fit or spill more words than it spares each; else
    it takes the first.
    ``emulation`` says from a kernel's facts what it multiplies in place of the format; ``None`` for one without a product.
    """

    configs: Sequence[Any]
    calls: Callable[[Any], Sequence[Call]]
    first_fitting: bool = False
    emulation: Emulation | None = None
    spared_words: Callable[[Any], int] = lambda _: 0


def empty(*sizes: int, kind: str = "fp32") -> torch.Tensor:
    """A tensor of this shape and format that has no memory."""
    return torch.empty(*sizes, dtype=TORCH_TYPES[kind], device="meta")
