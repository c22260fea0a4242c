"""Descriptors of matrices for kernels in Gluon, which are given the layout of a block in shared memory."""

from typing import Any

from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from backends.triton.gemm.ragged import within_groups

DTYPES = {"float8_e4m3fn": gl.float8e4nv, "bfloat16": gl.bfloat16, "float32": gl.float32}


def described(tensor: Any, block: list[int]) -> TensorDescriptor:
    """A descriptor of a matrix by blocks."""
    return _laid_out(tensor, list(tensor.shape), list(tensor.stride()), block)


def described_within_groups(c: Any, block: list[int]) -> TensorDescriptor:
    """As ``within_groups``, by which rows before any one row are stored and no others."""
    plain = within_groups(c, block)
    return _laid_out(c, list(plain.shape), list(plain.strides), list(plain.block_shape))


def _laid_out(tensor: Any, shape: list[int], strides: list[int], block: list[int]) -> TensorDescriptor:
    layout = gl.NVMMASharedLayout.get_default_for(block, DTYPES[str(tensor.dtype).removeprefix("torch.")])
    return TensorDescriptor(tensor, shape, strides, block, layout)
