"""Triton's own product of scaled operands (``tl.dot_scaled``) as a peer: on Hopper it converts to bf16 and multiplies there."""

from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from backends.triton.gemm.call import Call
from backends.triton.gemm.kernels import tile_of

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: N803


@triton.jit
def scaled_tiles(
    a_desc,
    b_desc,
    a_scale_ptr,
    b_scale_ptr,
    c_ptr,
    m,
    n,
    k,
    A_FORMAT: tl.constexpr,
    B_FORMAT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    ASSUMED: tl.constexpr,
):
    """Sizes are multiples of the blocks.  A is bf16 without scales, or e4m3; B has two numbers a byte where it is e2m1.

    ``ASSUMED`` lets the compiler know that the loop runs: where A is converted in registers, products then overlap.
    """
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), 8)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    blocks = tl.arange(0, BLOCK_K // 32)
    packed: tl.constexpr = 2 if B_FORMAT == "e2m1" else 1
    if ASSUMED:
        tl.assume(k > 0)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        a = a_desc.load([tile_m * BLOCK_M, start])
        b = b_desc.load([tile_n * BLOCK_N, start // packed])
        b_scale = tl.load(b_scale_ptr + columns[:, None] * (k // 32) + start // 32 + blocks[None, :])
        if A_FORMAT == "bf16":
            acc = tl.dot_scaled(a, None, A_FORMAT, b.T, b_scale, B_FORMAT, acc)
        else:
            a_scale = tl.load(a_scale_ptr + rows[:, None] * (k // 32) + start // 32 + blocks[None, :])
            acc = tl.dot_scaled(a, a_scale, A_FORMAT, b.T, b_scale, B_FORMAT, acc)
    c_ptrs = c_ptr + rows[:, None].to(tl.int64) * n + columns[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty))


def mxfp8_call(
    a: torch.Tensor, a_scales: torch.Tensor, b: torch.Tensor, b_scales: torch.Tensor, c: torch.Tensor, tiles: tuple[int, ...]
) -> Call:
    """Elements and scales as bytes; ``tiles`` are the blocks of m, n and k, warps, stages and ``ASSUMED``."""
    fp8 = torch.float8_e4m3fn
    return _call(a.view(fp8), a_scales, b.view(fp8), b_scales, c, ("e4m3", "e4m3"), tiles)


def mxfp4_call(x: torch.Tensor, w: torch.Tensor, w_scales: torch.Tensor, c: torch.Tensor, tiles: tuple[int, ...]) -> Call:
    """bf16 times mxfp4, two a byte."""
    return _call(x, w_scales, w, w_scales, c, ("bf16", "e2m1"), tiles)


def label(tiles: tuple[int, ...]) -> str:
    """For people, of the same ``tiles``."""
    assumed = ", loop assumed to run" if tiles[5] else ""
    return f"dot_scaled {'x'.join(map(str, tiles[:3]))}, {tiles[3]} warps, {tiles[4]} stages{assumed}"


def _call(
    a: torch.Tensor,
    a_scales: torch.Tensor,
    b: torch.Tensor,
    b_scales: torch.Tensor,
    c: torch.Tensor,
    formats: tuple[str, str],
    tiles: tuple[int, ...],
) -> Call:
    (m, k), n = a.shape, b.shape[0]
    block_m, block_n, block_k, warps, stages, assumed = tiles
    packed = 2 if formats[1] == "e2m1" else 1
    arguments: tuple[Any, ...] = (
        TensorDescriptor.from_tensor(a, [block_m, block_k]),
        TensorDescriptor.from_tensor(b, [block_n, block_k // packed]),
        *(a_scales, b_scales, c, m, n, k),
    )
    constants: dict[str, Any] = {
        "A_FORMAT": formats[0],
        "B_FORMAT": formats[1],
        "BLOCK_M": block_m,
        "BLOCK_N": block_n,
        "BLOCK_K": block_k,
    }
    constants["ASSUMED"] = bool(assumed)
    grid = (m // block_m * (n // block_n), 1, 1)
    return Call(scaled_tiles, grid, arguments, constants, {"num_warps": warps, "num_stages": stages})
