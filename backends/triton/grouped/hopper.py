"""Grouped products of fp8 in scaled blocks for Hopper in Gluon: one warp loads, two groups of four warps multiply in turns.

A program takes tiles of 128 rows, 64 to each group of warps, and goes through K in blocks of 128: what has one scale.  The
tensor core sums a block by itself; its sums are then added up in fp32, times their scales, while the other group multiplies
(DeepSeek-V3 technical report, section 3.3.2, "increasing accumulation precision").  Copies are TMA's, and every buffer has a
barrier for full and one for empty; C is stored through buffers of its own, while the next tile is multiplied.

Names as in ``kernels``; scales of A are (k / 128 x scale_rows), of B (n / 128 of each group x k / 128).
"""

from typing import Any

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from backends.triton.grouped.call import within_groups

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803, N806

ROWS = gl.constexpr(64)  # of one group of warps: what a wgmma multiplies
BLOCK = gl.constexpr(128)  # numbers along K that have one scale
TALL = gl.constexpr(1073741824)  # see ``call.within_groups``
VARIED = ["n", "k", "scale_rows"]
DTYPES = {"float8_e4m3fn": gl.float8e4nv, "bfloat16": gl.bfloat16}


@gluon.jit
def place_of(number, tiles_m, n, list_ptr, ends_ptr, BLOCK_N: gl.constexpr, GROUP: gl.constexpr):
    """Group, first row and end of a tile's rows, and its first column; ``backends.triton.gemm.kernels.tile_of`` in Gluon."""
    tiles_n = gl.cdiv(n, BLOCK_N)
    group_tiles = GROUP * tiles_n
    first = number // group_tiles * GROUP
    rows = gl.minimum(tiles_m - first, GROUP)
    within = number % group_tiles
    tile_m = first + within % rows
    group = gl.load(list_ptr + 1 + 2 * tile_m)
    row = gl.load(list_ptr + 2 + 2 * tile_m)
    return group, row, gl.load(ends_ptr + group), within // rows * BLOCK_N


@gluon.jit
def load_all(a, b, buffers, sizes, BLOCK_N: gl.constexpr, GROUP: gl.constexpr, STAGES: gl.constexpr):
    """What the loading warp does: both halves of A and B, block by block, for every tile of this program."""
    a_smem, b_smem, full, empty = buffers
    list_ptr, ends_ptr, n, k = sizes
    tiles_m = gl.load(list_ptr)
    tiles = tiles_m * gl.cdiv(n, BLOCK_N)
    count = 0
    for number in range(gl.program_id(0), tiles, gl.num_programs(0)):
        group, row, _end, column = place_of(number, tiles_m, n, list_ptr, ends_ptr, BLOCK_N, GROUP)
        b_row = group * n + column
        for start in range(0, k, BLOCK):
            stage = count % STAGES
            mbarrier.wait(empty.index(stage), ((count // STAGES) & 1) ^ 1)
            mbarrier.expect(full.index(stage), 2 * a.block_type.nbytes + b.block_type.nbytes)
            tma.async_copy_global_to_shared(a, [row, start], full.index(stage), a_smem.index(2 * stage))
            tma.async_copy_global_to_shared(a, [row + ROWS, start], full.index(stage), a_smem.index(2 * stage + 1))
            tma.async_copy_global_to_shared(b, [b_row, start], full.index(stage), b_smem.index(stage))
            count += 1


@gluon.jit
def multiply(
    c,
    c_smem,
    buffers,
    scales,
    sizes,
    SELF: gl.constexpr,
    BLOCK_N: gl.constexpr,
    GROUP: gl.constexpr,
    STAGES: gl.constexpr,
):
    """Everything that one group of four warps does: its half of each tile's rows."""
    a_smem, b_smem, full, empty = buffers
    a_scale_ptr, b_scale_ptr, scale_rows = scales
    list_ptr, ends_ptr, n, k = sizes
    LAYOUT: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BLOCK_N, 32])
    ROW_LAYOUT: gl.constexpr = gl.SliceLayout(1, LAYOUT)
    tiles_m = gl.load(list_ptr)
    tiles = tiles_m * gl.cdiv(n, BLOCK_N)
    blocks = k // BLOCK
    count = 0
    for number in range(gl.program_id(0), tiles, gl.num_programs(0)):
        group, top, end, column = place_of(number, tiles_m, n, list_ptr, ends_ptr, BLOCK_N, GROUP)
        row = top + SELF * ROWS
        rows = row + gl.arange(0, ROWS, ROW_LAYOUT)
        a_scales = a_scale_ptr + rows
        b_scales = b_scale_ptr + ((group * n + column) // BLOCK).to(gl.int64) * blocks
        acc = gl.zeros([ROWS, BLOCK_N], gl.float32, LAYOUT)
        scale = gl.load(a_scales, mask=rows < end, other=0.0) * gl.load(b_scales)
        for block in range(blocks):
            stage = count % STAGES
            mbarrier.wait(full.index(stage), (count // STAGES) & 1)
            none = gl.zeros([ROWS, BLOCK_N], gl.float32, LAYOUT)
            b_tile = b_smem.index(stage).permute([1, 0])
            sums = warpgroup_mma(a_smem.index(2 * stage + SELF), b_tile, none, use_acc=False, is_async=True)
            # The next block's scales are on their way while this one is multiplied.
            ahead = gl.minimum(block + 1, blocks - 1)
            next_a = gl.load(a_scales + ahead.to(gl.int64) * scale_rows, mask=rows < end, other=0.0)
            next_scale = next_a * gl.load(b_scales + ahead)
            sums = warpgroup_mma_wait(0, deps=[sums])
            mbarrier.arrive(empty.index(stage))
            acc = acc + sums * scale[:, None]
            scale = next_scale
            count += 1
        c_tile = c_smem.index(SELF)
        tma.store_wait(0)
        c_tile.reshape([ROWS, BLOCK_N]).store(acc.to(c_smem.dtype))
        fence_async_shared()
        left = gl.minimum(end - row, ROWS)
        if left > 0:
            tma.async_copy_shared_to_global(c, [TALL, row + left, TALL - left, column], c_tile)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=VARIED)
def blocks_on_hopper(
    a,
    b,
    c,
    a_scale_ptr,
    b_scale_ptr,
    ends_ptr,
    list_ptr,
    n,
    k,
    scale_rows,
    BLOCK_N: gl.constexpr,
    GROUP: gl.constexpr,
    STAGES: gl.constexpr,
    REGISTERS: gl.constexpr,
):
    """Descriptors have blocks of ``[ROWS, BLOCK]`` for A, ``[BLOCK_N, BLOCK]`` for B, ``[1, 1, ROWS, BLOCK_N]`` for C."""
    a_smem = gl.allocate_shared_memory(a.dtype, [2 * STAGES, ROWS, BLOCK], a.layout)
    b_smem = gl.allocate_shared_memory(b.dtype, [STAGES, BLOCK_N, BLOCK], b.layout)
    c_smem = gl.allocate_shared_memory(c.dtype, [2, 1, 1, ROWS, BLOCK_N], c.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=2)
    fence_async_shared()
    sizes = (list_ptr, ends_ptr, n, k)
    buffers = (a_smem, b_smem, full, empty)
    scales = (a_scale_ptr, b_scale_ptr, scale_rows)
    gl.warp_specialize(
        [
            (multiply, (c, c_smem, buffers, scales, sizes, 0, BLOCK_N, GROUP, STAGES)),
            (multiply, (c, c_smem, buffers, scales, sizes, 1, BLOCK_N, GROUP, STAGES)),
            (load_all, (a, b, buffers, sizes, BLOCK_N, GROUP, STAGES)),
        ],
        [4, 1],
        [REGISTERS, 24],
    )


def described(tensor: Any, block: list[int]) -> TensorDescriptor:
    """A descriptor of a matrix by blocks."""
    return _laid_out(tensor, list(tensor.shape), list(tensor.stride()), block)


def described_within_groups(c: Any, block: list[int]) -> TensorDescriptor:
    """As ``call.within_groups``, by which rows before any one row are stored and no others."""
    plain = within_groups(c, block)
    return _laid_out(c, list(plain.shape), list(plain.strides), list(plain.block_shape))


def _laid_out(tensor: Any, shape: list[int], strides: list[int], block: list[int]) -> TensorDescriptor:
    layout = gl.NVMMASharedLayout.get_default_for(block, DTYPES[str(tensor.dtype).removeprefix("torch.")])
    return TensorDescriptor(tensor, shape, strides, block, layout)
