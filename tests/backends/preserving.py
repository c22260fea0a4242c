"""Torch's process-wide switches as they were, after a test that changes them."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from backends.torch import precision


@contextmanager
def preserved() -> Iterator[None]:
    """Give the switches back; nothing counts as in force before or after."""
    matmul = torch.backends.cuda.matmul
    names = ("allow_bf16_reduced_precision_reduction", "allow_fp16_reduced_precision_reduction", "allow_fp16_accumulation")
    found = {name: getattr(matmul, name) for name in names}
    float32 = torch.get_float32_matmul_precision()
    precision._in_force = None
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(float32)
        for name, value in found.items():
            setattr(matmul, name, value)
        precision._in_force = None
