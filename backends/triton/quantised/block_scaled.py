"""C = A B^T with both operands in eight-bit floats and scales along K, multiplied as they are.

Sums over a block of K come from the multiplier and are added up in fp32, times the scales of their row of A and of B: those of
A and of B along K come first (blocks x rows), so that a tile's lie together.
"""

import triton
import triton.language as tl

from backends.triton.gemm.kernels import tile_of
from backends.triton.quantised.loads import block_of

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803


@triton.jit
def store_tile(acc, c_ptr, row, column, m, n):
    """Write a tile to C (m x n) in its type."""
    rows = row + tl.arange(0, acc.shape[0])
    columns = column + tl.arange(0, acc.shape[1])
    c_ptrs = c_ptr + rows[:, None].to(tl.int64) * n + columns[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def fp8_in_blocks(
    a,
    b,
    a_scales,
    b_scale_ptr,
    c_ptr,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    GROUP: tl.constexpr,
    DESCRIBED: tl.constexpr,
):
    """Scales in float32: of A one a row and 128 of K (k / 128 x rows), of B one for 128 x 128 (n / 128 x k / 128).

    ``a``, ``b`` and ``a_scales`` are tensor descriptors where ``DESCRIBED``, else pointers.
    """
    tl.static_assert(128 % BLOCK_N == 0, "a tile has one scale of B for each block of K")
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP)
    row = tile_m * BLOCK_M
    column = tile_n * BLOCK_N
    padded = tl.cdiv(m, 16) * 16
    blocks = k // 128
    tl.assume(blocks > 0)
    b_scale_ptrs = b_scale_ptr + column // 128 * blocks
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for block in range(blocks):
        a_block = block_of(a, row, block * 128, m, k, BLOCK_M, 128, "columns", DESCRIBED)
        b_block = block_of(b, column, block * 128, n, k, BLOCK_N, 128, "columns", DESCRIBED)
        scale = block_of(a_scales, block, row, 0, padded, 1, BLOCK_M, "rows", DESCRIBED).reshape(BLOCK_M)
        scale *= tl.load(b_scale_ptrs + block)
        acc += tl.dot(a_block, b_block.T, input_precision="ieee") * scale[:, None]
    store_tile(acc, c_ptr, row, column, m, n)


@triton.jit
def power_of_two(scales, place):
    """An E8M0 of a word of four, in float32."""
    return (((scales >> (8 * place)) & 0xFF) << 23).to(tl.float32, bitcast=True)


@triton.jit
def mxfp8_as_it_is(
    a_desc,
    b_desc,
    a_scale_desc,
    b_scale_desc,
    c_ptr,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Scales are words of four E8M0 (k / 128 x rows); descriptors of A and B have blocks of 32 numbers along K."""
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP)
    row = tile_m * BLOCK_M
    column = tile_n * BLOCK_N
    blocks = k // 32
    tl.assume(blocks > 0)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for block in range(blocks):
        a = a_desc.load([row, block * 32])
        b = b_desc.load([column, block * 32])
        a_scale = power_of_two(a_scale_desc.load([block // 4, row]).reshape(BLOCK_M), block % 4)
        b_scale = power_of_two(b_scale_desc.load([block // 4, column]).reshape(BLOCK_N), block % 4)
        sums = tl.dot(a, b.T, input_precision="ieee") * a_scale[:, None]
        acc += sums * b_scale[None, :]
    store_tile(acc, c_ptr, row, column, m, n)


@triton.jit
def mxfp8_to_bf16(x_ptr, scale_ptr, out_ptr, k, BLOCK: tl.constexpr):
    """``BLOCK`` numbers of a row of k, times their scales (rows x k / 32, E8M0 as stored)."""
    row = tl.program_id(0).to(tl.int64)
    places = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    blocks = tl.program_id(1) * (BLOCK // 32) + tl.arange(0, BLOCK // 32)
    x = tl.load(x_ptr + row * k + places, mask=places < k, other=0.0).to(tl.float32)
    scales = tl.load(scale_ptr + row * (k // 32) + blocks, mask=blocks < k // 32, other=0).to(tl.int32)
    scaled = x.reshape(BLOCK // 32, 32) * (scales << 23).to(tl.float32, bitcast=True)[:, None]
    tl.store(out_ptr + row * k + places, scaled.reshape(BLOCK).to(out_ptr.dtype.element_ty), mask=places < k)
