"""The kernels: C = A B, with A m x k, B k x n and C m x n, row-major as stored, either operand transposed or not.

One loads and stores through tensor descriptors (NVIDIA's TMA from Hopper on), which clip at the edges of a matrix; its
programs stay resident and go through many tiles.  The other loads through pointers with masks, one tile a program, for
devices without descriptors and for rows that a descriptor cannot have.

Names in capitals are constants of the compiled kernel.  ``ACC`` is the accumulator's type; ``PROMOTED`` sums each block of K
by itself and adds it to the accumulator in fp32; ``SCALES`` are "none", "tensor" (of each operand one number) or "row" (of A
one for each row, of B one for each column, in float32).
"""

import triton
import triton.language as tl

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803, RET505  # a constant condition needs its else: code after a return is compiled too


@triton.jit
def tile_of(number, tiles_m, tiles_n, GROUP: tl.constexpr):
    """Row and column of a tile, in tiles.

    Tiles go down columns of ``GROUP`` rows, so that those at work together share rows of A and columns of B in the cache.
    """
    group_tiles = GROUP * tiles_n
    first_row = number // group_tiles * GROUP
    rows = min(tiles_m - first_row, GROUP)
    within = number % group_tiles
    return first_row + within % rows, within // rows


@triton.jit
def plus_product(acc, a, b, ACC: tl.constexpr, PRECISION: tl.constexpr, PROMOTED: tl.constexpr):
    """``acc + a b``.  A limit on short sums keeps the compiler from folding a promoted sum back into one."""
    if PROMOTED:
        block = tl.dot(a, b, input_precision=PRECISION, max_num_imprecise_acc=a.shape[1], out_dtype=ACC)
        return acc + block
    return tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=ACC)


@triton.jit
def times_rows(acc, a_scale_ptr, b_scale_ptr, row, column, m, n, SCALES: tl.constexpr):
    """A tile of sums with the scales of its rows and columns, where they have any."""
    if SCALES == "row":
        rows = row + tl.arange(0, acc.shape[0])
        columns = column + tl.arange(0, acc.shape[1])
        a_scale = tl.load(a_scale_ptr + rows, mask=rows < m, other=0.0)
        b_scale = tl.load(b_scale_ptr + columns, mask=columns < n, other=0.0)
        return acc.to(tl.float32) * a_scale[:, None] * b_scale[None, :]
    else:
        return acc


@triton.jit
def halves(tile):
    """The left and the right half of a tile's columns."""
    wide = tile.reshape(tile.shape[0], 2, tile.shape[1] // 2)
    return wide.permute(0, 2, 1).split()


@triton.jit
def store_slices(c_desc, row, column, acc, SLICES: tl.constexpr):
    """Store a tile in one, two or four parts, each through a buffer of its own size."""
    width: tl.constexpr = acc.shape[1] // SLICES
    if SLICES == 1:
        c_desc.store([row, column], acc.to(c_desc.dtype))
    else:
        left, right = halves(acc)
        if SLICES == 2:
            c_desc.store([row, column], left.to(c_desc.dtype))
            c_desc.store([row, column + width], right.to(c_desc.dtype))
        else:
            first, second = halves(left)
            c_desc.store([row, column], first.to(c_desc.dtype))
            c_desc.store([row, column + width], second.to(c_desc.dtype))
            third, fourth = halves(right)
            c_desc.store([row, column + 2 * width], third.to(c_desc.dtype))
            c_desc.store([row, column + 3 * width], fourth.to(c_desc.dtype))


@triton.jit
def gemm_by_descriptors(
    a_desc,
    b_desc,
    c_desc,
    a_scale_ptr,
    b_scale_ptr,
    m,
    n,
    k,
    A_TRANSPOSED: tl.constexpr,
    B_TRANSPOSED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    SLICES: tl.constexpr,
    FLATTEN: tl.constexpr,
    ACC: tl.constexpr,
    PRECISION: tl.constexpr,
    PROMOTED: tl.constexpr,
    SCALES: tl.constexpr,
):
    """Blocks: A ``BLOCK_M`` x ``BLOCK_K``, B ``BLOCK_K`` x ``BLOCK_N``, transposed where the operand is; C a slice of a tile.

    ``FLATTEN`` makes one loop of tiles and blocks, so that a tile's first blocks are on their way while the last is stored.
    """
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    scale = 1.0
    if SCALES == "tensor":
        scale = tl.load(a_scale_ptr) * tl.load(b_scale_ptr)
    for number in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=FLATTEN):
        tile_m, tile_n = tile_of(number, tiles_m, tiles_n, GROUP)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
        for start in range(0, k, BLOCK_K):
            a = a_desc.load([start, row]).T if A_TRANSPOSED else a_desc.load([row, start])
            b = b_desc.load([column, start]).T if B_TRANSPOSED else b_desc.load([start, column])
            acc = plus_product(acc, a, b, ACC, PRECISION, PROMOTED)
        if SCALES == "tensor":
            acc = acc * scale
        acc = times_rows(acc, a_scale_ptr, b_scale_ptr, row, column, m, n, SCALES)
        store_slices(c_desc, row, column, acc, SLICES)


@triton.jit
def gemm_by_pointers(
    a_ptr,
    b_ptr,
    c_ptr,
    a_scale_ptr,
    b_scale_ptr,
    m,
    n,
    k,
    a_columns,
    b_columns,
    A_TRANSPOSED: tl.constexpr,
    B_TRANSPOSED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    WHOLE_K: tl.constexpr,
    ACC: tl.constexpr,
    PRECISION: tl.constexpr,
    PROMOTED: tl.constexpr,
    SCALES: tl.constexpr,
):
    """``a_columns`` and ``b_columns`` are the lengths of rows as stored; ``WHOLE_K`` says that ``BLOCK_K`` divides k."""
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    terms = tl.arange(0, BLOCK_K)
    if A_TRANSPOSED:
        a_ptrs = a_ptr + terms[None, :].to(tl.int64) * a_columns + rows[:, None]
        a_step = tl.cast(a_columns, tl.int64) * BLOCK_K
    else:
        a_ptrs = a_ptr + rows[:, None].to(tl.int64) * a_columns + terms[None, :]
        a_step = BLOCK_K
    if B_TRANSPOSED:
        b_ptrs = b_ptr + columns[None, :].to(tl.int64) * b_columns + terms[:, None]
        b_step = BLOCK_K
    else:
        b_ptrs = b_ptr + terms[:, None].to(tl.int64) * b_columns + columns[None, :]
        b_step = tl.cast(b_columns, tl.int64) * BLOCK_K
    in_rows = rows < m
    in_columns = columns < n
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for start in range(0, k, BLOCK_K):
        if WHOLE_K:
            a = tl.load(a_ptrs, mask=in_rows[:, None], other=0.0)
            b = tl.load(b_ptrs, mask=in_columns[None, :], other=0.0)
        else:
            in_terms = terms < k - start
            a = tl.load(a_ptrs, mask=in_rows[:, None] & in_terms[None, :], other=0.0)
            b = tl.load(b_ptrs, mask=in_terms[:, None] & in_columns[None, :], other=0.0)
        acc = plus_product(acc, a, b, ACC, PRECISION, PROMOTED)
        a_ptrs += a_step
        b_ptrs += b_step
    if SCALES == "tensor":
        acc = acc * (tl.load(a_scale_ptr) * tl.load(b_scale_ptr))
    acc = times_rows(acc, a_scale_ptr, b_scale_ptr, tile_m * BLOCK_M, tile_n * BLOCK_N, m, n, SCALES)
    c_ptrs = c_ptr + rows[:, None].to(tl.int64) * n + columns[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_rows[:, None] & in_columns[None, :])
