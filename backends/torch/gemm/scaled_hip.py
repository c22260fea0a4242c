"""Scaled products on AMD's devices, through hipBLASLt.

What torch takes is by ATen's ``ScaledBlas.cpp``: one scale a tensor or row as on CUDA, no blocks of 128, and MX blocks with
scales that lie as the quantiser leaves them, in builds for ROCm before 7.13; later ones want them in an order of hipBLASLt's.
"""

from functools import partial

import torch

from backends.torch.data import Operand
from backends.torch.gemm import scaled
from backends.torch.gemm.operands import quantised_of
from backends.torch.gemm.sizes import Sizes
from backends.torch.gemm.way import Bind, Launch, Task, Way, multiples
from backends.torch.hip_target import HIPBLASLT
from backends.torch.quantise.formats import Format

REORDERED_SINCE = (7, 13)
STEP = 32  # of every size, with MX blocks
BLOCKS_OF_32 = scaled.Recipe([3], [scaled.PLAIN])


def not_offered(a: Format) -> str | None:
    """Why torch's call for a format that the device takes is not used here; ``None`` when it is."""
    version = _rocm_version()
    if a.block.k and version >= REORDERED_SINCE:
        built = ".".join(map(str, version))
        return f"torch for ROCm {built} wants scales of MX blocks in an order of {HIPBLASLT}'s that is not written here"
    return None


def quantised_scales(a: Format) -> Way:
    """fp8 with one scale a tensor or row, or numbers in MX blocks."""
    if not a.block.k:
        return scaled.by_rows(HIPBLASLT)
    return Way(scaled.SCALED_MM_BLOCKS, HIPBLASLT, _in_blocks, _refused)


def _refused(sizes: Sizes) -> str | None:
    return multiples(f"{scaled.SCALED_MM_BLOCKS} on ROCm", STEP, m=sizes.m, n=sizes.n, k=sizes.k)


def _in_blocks(task: Task) -> Bind:
    def bind(a: Operand, b: Operand, output: torch.Tensor) -> Launch:
        return partial(
            torch.ops.aten._scaled_mm_v2.out,
            a.data,
            b.data.t(),
            [quantised_of(a).scales],
            *BLOCKS_OF_32,
            [quantised_of(b).scales],
            *BLOCKS_OF_32,
            None,
            output.dtype,
            out=output,
        )

    return bind


def _rocm_version() -> tuple[int, ...]:
    """Major and minor that torch was built for (``7.2.53211``)."""
    return tuple(int(part) for part in str(torch.version.hip).split(".")[:2])
