"""C = X W^T with bf16 activations X (m x k) and quantised weights W (n x k): converted in registers, on the way to the unit.

The products here are those of W X^T: the multiplier of Hopper takes its left operand from registers, so that weights go from
memory to there without being written anywhere again.  C is stored transposed.

``w``, ``x``, ``scales`` and ``zeros`` are tensor descriptors where ``DESCRIBED``, else pointers; ``prepack`` has their order.
``FORMAT`` is int4, uint4, mxfp4 (numbers come out 2^-64 of what they are worth), mxfp4_full or int8.
"""

import triton
import triton.language as tl

from backends.triton.gemm.kernels import tile_of
from backends.triton.quantised.convert import int4_planes, int8_planes, mxfp4_planes, uint4_planes
from backends.triton.quantised.loads import block_of

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803, RET505  # a constant condition needs its else: code after a return is compiled too


@triton.jit
def in_order_of_four(p0, p1, p2, p3, BLOCKS: tl.constexpr):
    """Planes (rows x 32 BLOCKS) as a block of the matrix (rows x 128 BLOCKS): an operand's registers in another order."""
    rows: tl.constexpr = p0.shape[0]
    planes = tl.join(tl.join(p0, p2), tl.join(p1, p3)).reshape(rows, BLOCKS, 32, 2, 2)
    return planes.permute(0, 1, 3, 4, 2).reshape(rows, 128 * BLOCKS)


@triton.jit
def in_order_of_two(p0, p1, BLOCKS: tl.constexpr):
    """As ``in_order_of_four``: planes (rows x 32 BLOCKS) to rows x 64 BLOCKS."""
    rows: tl.constexpr = p0.shape[0]
    planes = tl.join(p0, p1).reshape(rows, BLOCKS, 32, 2)
    return planes.permute(0, 1, 3, 2).reshape(rows, 64 * BLOCKS)


@triton.jit
def for_words(per_block, BLOCKS: tl.constexpr):
    """What each row has of each block (BLOCKS x rows), for every word (rows x 32 BLOCKS)."""
    rows: tl.constexpr = per_block.shape[1]
    if BLOCKS == 1:
        return per_block.reshape(rows, 1)
    else:
        return per_block.T.expand_dims(2).broadcast_to(rows, BLOCKS, 32).reshape(rows, 32 * BLOCKS)


@triton.jit
def converted(
    words,
    scales,
    zeros,
    row,
    block,
    n,
    BLOCKS: tl.constexpr,
    FORMAT: tl.constexpr,
    DTYPE: tl.constexpr,
    ASM: tl.constexpr,
    DESCRIBED: tl.constexpr,
):
    """``BLOCKS`` of K from 32 words of each row for each: 128 numbers of four bits or 64 of eight."""
    if FORMAT == "int8":
        p0, p1 = int8_planes(words, DTYPE, ASM)
        return in_order_of_two(p0, p1, BLOCKS)
    else:
        rows: tl.constexpr = words.shape[0]
        padded = tl.cdiv(n, 16) * 16
        scale = for_words(block_of(scales, block, row, 0, padded, BLOCKS, rows, "rows", DESCRIBED), BLOCKS)
        if FORMAT == "int4":
            p0, p1, p2, p3 = int4_planes(words, scale, DTYPE, ASM)
        elif FORMAT == "uint4":
            zero = for_words(block_of(zeros, block, row, 0, padded, BLOCKS, rows, "rows", DESCRIBED), BLOCKS)
            p0, p1, p2, p3 = uint4_planes(words, scale, zero, DTYPE, ASM)
        else:
            p0, p1, p2, p3 = mxfp4_planes(words, scale, DTYPE, ASM, FORMAT == "mxfp4_full")
        return in_order_of_four(p0, p1, p2, p3, BLOCKS)


@triton.jit
def plus_turns(
    acc,
    w,
    x,
    scales,
    zeros,
    row,
    column,
    first,
    last,
    m,
    n,
    k,
    BLOCKS: tl.constexpr,
    FORMAT: tl.constexpr,
    ASM: tl.constexpr,
    DESCRIBED: tl.constexpr,
):
    """``acc`` (rows of W x rows of X) and the products over turns ``first`` to ``last``, each of ``BLOCKS`` blocks of K."""
    rows: tl.constexpr = acc.shape[0]
    columns: tl.constexpr = acc.shape[1]
    per_word: tl.constexpr = 2 if FORMAT == "int8" else 4
    turn_words: tl.constexpr = 32 * BLOCKS
    turn_k: tl.constexpr = per_word * turn_words
    # A loop that may not run has sums from elsewhere, and the multiplier would be waited for each time.
    tl.assume(last > first)
    for turn in range(first, last):
        words = block_of(w, row, turn * turn_words, n, k // per_word, rows, turn_words, "columns", DESCRIBED)
        xs = block_of(x, column, turn * turn_k, m, k, columns, turn_k, "columns", DESCRIBED)
        ws = converted(words, scales, zeros, row, turn * BLOCKS, n, BLOCKS, FORMAT, xs.dtype, ASM, DESCRIBED)
        acc = tl.dot(ws, xs.T, acc, input_precision="ieee")
    return acc


@triton.jit
def stored(acc, c_ptr, row, column, m, n, scale_ptr, FORMAT: tl.constexpr):
    """Write sums (rows of W x rows of X) to C (m x n), with what is left of the scales."""
    rows = row + tl.arange(0, acc.shape[0])
    columns = column + tl.arange(0, acc.shape[1])
    if FORMAT == "mxfp4":
        acc = acc * 18446744073709551616.0  # 2^64: see mxfp4_planes
    if FORMAT == "int8":
        acc = acc * tl.load(scale_ptr + rows, mask=rows < n, other=0.0).to(tl.float32)[:, None]
    c_ptrs = c_ptr + columns[:, None].to(tl.int64) * n + rows[None, :]
    tl.store(c_ptrs, acc.T.to(c_ptr.dtype.element_ty), mask=(columns[:, None] < m) & (rows[None, :] < n))


@triton.jit
def weight_only_tiles(
    w,
    x,
    scales,
    zeros,
    scale_ptr,
    c_ptr,
    m,
    n,
    k,
    BLOCK_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCKS: tl.constexpr,
    GROUP: tl.constexpr,
    FORMAT: tl.constexpr,
    ASM: tl.constexpr,
    DESCRIBED: tl.constexpr,
):
    """One tile of C a program.  A turn of the loop takes ``BLOCKS`` blocks of K, of which there are whole turns."""
    tile_n, tile_m = tile_of(tl.program_id(0), tl.cdiv(n, BLOCK_N), tl.cdiv(m, BLOCK_M), GROUP)
    row = tile_n * BLOCK_N
    column = tile_m * BLOCK_M
    turns = k // ((64 if FORMAT == "int8" else 128) * BLOCKS)
    acc = tl.zeros((BLOCK_N, BLOCK_M), dtype=tl.float32)
    acc = plus_turns(acc, w, x, scales, zeros, row, column, 0, turns, m, n, k, BLOCKS, FORMAT, ASM, DESCRIBED)
    stored(acc, c_ptr, row, column, m, n, scale_ptr, FORMAT)


@triton.jit
def weight_only_split(
    w,
    x,
    scales,
    zeros,
    scale_ptr,
    c_ptr,
    parts_ptr,
    arrived_ptr,
    m,
    n,
    k,
    BLOCK_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCKS: tl.constexpr,
    SPLIT: tl.constexpr,
    FORMAT: tl.constexpr,
    ASM: tl.constexpr,
    DESCRIBED: tl.constexpr,
):
    """A part of K of one tile a program, of ``SPLIT``; the last to arrive adds the parts up, always in the same order.

    ``parts`` has fp32 sums (tiles x SPLIT x BLOCK_M x BLOCK_N), ``arrived`` a count of each tile, 0 before and after.  There
    are at least ``SPLIT`` turns of the loop.
    """
    tiles_n = tl.cdiv(n, BLOCK_N)
    part = tl.program_id(0) % SPLIT
    tile = tl.program_id(0) // SPLIT
    row = tile % tiles_n * BLOCK_N
    column = tile // tiles_n * BLOCK_M
    turns = k // ((64 if FORMAT == "int8" else 128) * BLOCKS)
    first = turns * part // SPLIT
    last = turns * (part + 1) // SPLIT
    acc = tl.zeros((BLOCK_N, BLOCK_M), dtype=tl.float32)
    acc = plus_turns(acc, w, x, scales, zeros, row, column, first, last, m, n, k, BLOCKS, FORMAT, ASM, DESCRIBED)
    if SPLIT == 1:
        stored(acc, c_ptr, row, column, m, n, scale_ptr, FORMAT)
    else:
        held_ptrs = parts_ptr + tile.to(tl.int64) * SPLIT * BLOCK_M * BLOCK_N
        held_ptrs += tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
        wanted = (column + tl.arange(0, BLOCK_M) < m)[:, None]
        tl.store(held_ptrs + part * BLOCK_M * BLOCK_N, acc.T, mask=wanted)
        tl.debug_barrier()  # every thread's part is written before one of them says so
        if tl.atomic_add(arrived_ptr + tile, 1, sem="acq_rel") == SPLIT - 1:
            total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for each in tl.static_range(SPLIT):
                total += tl.load(held_ptrs + each * BLOCK_M * BLOCK_N, mask=wanted, other=0.0, cache_modifier=".cg")
            stored(total.T, c_ptr, row, column, m, n, scale_ptr, FORMAT)
            tl.store(arrived_ptr + tile, 0)
