"""The kernels: C[row] = A[row] B[group of the row]^T, with A rows x k, B groups n x k and C rows x n, row-major.

``schedule`` writes the list of tiles: rows are cut group by group, so that no tile has rows of two.  Where groups end is read
on the device, as a router leaves it there: the list costs a launch, and no wait of the host.  The others go through the list,
those of one group and neighbouring rows after one another, so that they share B in the cache.

One loads and stores through tensor descriptors and stays resident; the other loads through pointers, one tile a program.  With
a group's last tile rows of the next are loaded and multiplied in vain; they are never stored.

Names in capitals are constants; those that are not explained are ``backends.triton.gemm.kernels``'.  ``SCALES`` may also be
"block": of A one for each row and 128 numbers along K (k / 128 x scale_rows), of B one for 128 x 128 (n / 128 of each group x
k / 128).
"""

import triton
import triton.language as tl

from backends.triton.gemm.kernels import halves, plus_product, tile_of, times_rows

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803


@triton.jit
def schedule(ends_ptr, list_ptr, groups, BLOCK_M: tl.constexpr, GROUPS: tl.constexpr, STEP: tl.constexpr):
    """The number of row tiles, then for each of them its group and its first row; ``STEP`` of them a program.

    ``GROUPS`` is a power of two, no less than ``groups``.
    """
    each = tl.arange(0, GROUPS)
    known = each < groups
    ends = tl.load(ends_ptr + each, mask=known, other=0)
    starts = tl.load(ends_ptr + each - 1, mask=known & (each > 0), other=0)
    tiles = tl.where(known, tl.cdiv(ends - starts, BLOCK_M), 0)
    total = tl.sum(tiles, 0)
    if tl.program_id(0) == 0:
        tl.store(list_ptr, total)
    number = tl.program_id(0) * STEP + tl.arange(0, STEP)
    inside = number < total
    before = tl.cumsum(tiles, 0)[None, :] <= number[:, None]
    group = tl.sum(before.to(tl.int32), 1)
    passed = tl.sum(tl.where(before, tiles[None, :], 0), 1)
    start = tl.load(ends_ptr + group - 1, mask=inside & (group > 0), other=0)
    tl.store(list_ptr + 1 + 2 * number, group, mask=inside)
    tl.store(list_ptr + 2 + 2 * number, start + (number - passed) * BLOCK_M, mask=inside)


@triton.jit
def listed(ends_ptr, list_ptr, tile_m):
    """Group, first row, and where the group's rows end."""
    group = tl.load(list_ptr + 1 + 2 * tile_m)
    return group, tl.load(list_ptr + 2 + 2 * tile_m), tl.load(ends_ptr + group)


@triton.jit
def plus_scaled(acc, a, b, a_scale_ptr, b_scale_ptr, block, row, end, scale_rows, blocks, b_row):
    """``acc`` and the sums of one block of K, times the scales of their rows of A and that of B."""
    rows = row + tl.arange(0, acc.shape[0])
    a_scale = tl.load(a_scale_ptr + tl.cast(block, tl.int64) * scale_rows + rows, mask=rows < end, other=0.0)
    b_scale = tl.load(b_scale_ptr + tl.cast(b_row // 128, tl.int64) * blocks + block)
    return acc + tl.dot(a, b, input_precision="ieee") * (a_scale * b_scale)[:, None]


@triton.jit
def store_within(c_desc, row, end, column, tile):
    """Store rows before ``end`` alone, as many as are left of the third axis: see ``backends.triton.gemm.ragged``."""
    rows = tl.minimum(end - row, tile.shape[0])
    tile = tile.to(c_desc.dtype).reshape(1, 1, tile.shape[0], tile.shape[1])
    c_desc.store([1073741824, row + rows, 1073741824 - rows, column], tile)


@triton.jit
def store_slices_within(c_desc, row, end, column, acc, SLICES: tl.constexpr):
    """A tile in one, two or four parts, each through a buffer of its own size."""
    width: tl.constexpr = acc.shape[1] // SLICES
    if SLICES == 1:
        store_within(c_desc, row, end, column, acc)
    else:
        left, right = halves(acc)
        if SLICES == 2:
            store_within(c_desc, row, end, column, left)
            store_within(c_desc, row, end, column + width, right)
        else:
            first, second = halves(left)
            store_within(c_desc, row, end, column, first)
            store_within(c_desc, row, end, column + width, second)
            third, fourth = halves(right)
            store_within(c_desc, row, end, column + 2 * width, third)
            store_within(c_desc, row, end, column + 3 * width, fourth)


@triton.jit
def grouped_by_descriptors(
    a_desc,
    b_desc,
    c_desc,
    a_scale_ptr,
    b_scale_ptr,
    ends_ptr,
    list_ptr,
    n,
    k,
    scale_rows,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    SLICES: tl.constexpr,
    FLATTEN: tl.constexpr,
    PROMOTED: tl.constexpr,
    SCALES: tl.constexpr,
):
    """Blocks: A ``BLOCK_M`` x ``BLOCK_K``, B ``BLOCK_N`` x ``BLOCK_K``, C a slice of a tile."""
    tiles_m = tl.load(list_ptr)
    tiles_n = tl.cdiv(n, BLOCK_N)
    for number in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=FLATTEN):
        tile_m, tile_n = tile_of(number, tiles_m, tiles_n, GROUP)
        group, row, end = listed(ends_ptr, list_ptr, tile_m)
        column = tile_n * BLOCK_N
        b_row = group * n + column
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, k, BLOCK_K):
            a = a_desc.load([row, start])
            b = b_desc.load([b_row, start]).T
            if SCALES == "block":
                blocks = k // BLOCK_K
                acc = plus_scaled(acc, a, b, a_scale_ptr, b_scale_ptr, start // BLOCK_K, row, end, scale_rows, blocks, b_row)
            else:
                acc = plus_product(acc, a, b, tl.float32, "ieee", PROMOTED)
        acc = times_rows(acc, a_scale_ptr, b_scale_ptr + group * n, row, column, end, n, SCALES)
        store_slices_within(c_desc, row, end, column, acc, SLICES)


@triton.jit
def grouped_by_pointers(
    a_ptr,
    b_ptr,
    c_ptr,
    a_scale_ptr,
    b_scale_ptr,
    ends_ptr,
    list_ptr,
    n,
    k,
    scale_rows,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    WHOLE_K: tl.constexpr,
    PROMOTED: tl.constexpr,
    SCALES: tl.constexpr,
):
    """``WHOLE_K`` says that ``BLOCK_K`` divides k.  Programs past the last tile have nothing to do."""
    tiles_m = tl.load(list_ptr)
    tiles_n = tl.cdiv(n, BLOCK_N)
    if tl.program_id(0) < tiles_m * tiles_n:
        tile_m, tile_n = tile_of(tl.program_id(0), tiles_m, tiles_n, GROUP)
        group, row, end = listed(ends_ptr, list_ptr, tile_m)
        column = tile_n * BLOCK_N
        b_row = group * n + column
        rows = row + tl.arange(0, BLOCK_M)
        columns = column + tl.arange(0, BLOCK_N)
        terms = tl.arange(0, BLOCK_K)
        in_rows = rows < end
        in_columns = columns < n
        a_ptrs = a_ptr + rows[:, None].to(tl.int64) * k + terms[None, :]
        b_ptrs = b_ptr + (group * n + columns)[None, :].to(tl.int64) * k + terms[:, None]
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, k, BLOCK_K):
            if WHOLE_K:
                a = tl.load(a_ptrs, mask=in_rows[:, None], other=0.0)
                b = tl.load(b_ptrs, mask=in_columns[None, :], other=0.0)
            else:
                in_terms = terms < k - start
                a = tl.load(a_ptrs, mask=in_rows[:, None] & in_terms[None, :], other=0.0)
                b = tl.load(b_ptrs, mask=in_terms[:, None] & in_columns[None, :], other=0.0)
            if SCALES == "block":
                blocks = k // BLOCK_K
                acc = plus_scaled(acc, a, b, a_scale_ptr, b_scale_ptr, start // BLOCK_K, row, end, scale_rows, blocks, b_row)
            else:
                acc = plus_product(acc, a, b, tl.float32, "ieee", PROMOTED)
            a_ptrs += BLOCK_K
            b_ptrs += BLOCK_K
        acc = times_rows(acc, a_scale_ptr, b_scale_ptr + group * n, row, column, end, n, SCALES)
        c_ptrs = c_ptr + rows[:, None].to(tl.int64) * n + columns[None, :]
        tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_rows[:, None] & in_columns[None, :])
