"""C = X W^T for a few rows of X (bf16) and many of W (n x k, four bits): weights go from memory to the multiplier's registers.

Each warp takes 16 ``TILES`` rows of W and every ``WARPS``-th group of 128 numbers along K, as a batch of products of W X^T by
``mma.m16n8k16``: nothing passes through shared memory until the sums of the warps are added up at the end.  Loads of the next
groups are under way while one is multiplied: the loop's own variables are the buffers.

The instruction has eight columns.  Where X has fewer rows, they are rows of X by groups of K (``SETS``): each group's product
is right in the columns that hold its part of X, and those alone are added up.  Eight groups of one row of X then take the
registers, the loads and the sum over K of one.

Codes enter the product as 128 + code (or 136 + number), bf16 that are exact; what is too much, that times the sum of X over the
group, is where the group's sums begin, and the scale is applied to those: a weight costs an instruction, not three.

Names of axes of a group, ``order`` has them in memory: of its 128 numbers ``u`` (2), ``f`` (2), ``q`` (4), ``s`` (2), ``p`` (2)
and ``e`` (2) from the slowest to the fastest; of a tile's 16 rows ``h`` (2) and ``g`` (8).
"""

import triton
import triton.language as tl

from backends.triton.quantised.convert import int4_codes, uint4_codes
from backends.triton.quantised.few_rows import order

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803, N806, SIM102  # a constant condition stands alone: what it excludes is not compiled

# See ``order``.
STRIP = tl.constexpr(order.STRIP)
COLUMNS = tl.constexpr(order.COLUMNS)
BLOCK_STRIPS = tl.constexpr(order.BLOCK_STRIPS)
BLOCK_GROUPS = tl.constexpr(order.BLOCK_STRIPS * order.STRIP)


@triton.jit
def halves(words, DTYPE: tl.constexpr):
    """The two numbers of 16 bits in each word, along a last axis; nothing to do in registers.

    Loops carry words, not halves, which the compiler would keep in a register each.
    """
    low, high = words.to(tl.int16), (words >> 16).to(tl.int16)
    return tl.join(low.to(DTYPE, bitcast=True), high.to(DTYPE, bitcast=True))


@triton.jit
def next_group(group, turn: tl.constexpr, count: tl.constexpr, FAR: tl.constexpr):
    """A warp's group ``count`` turns after ``group``, which is turn ``turn`` of its strip; strips are ``FAR`` apart."""
    strips = (turn + count) // STRIP
    return group + strips * FAR + count - strips * STRIP


@triton.jit
def words_of(words_ptr, tile, group, last, tiles, WARPS: tl.constexpr, TILES: tl.constexpr):
    """Words (2 TILES x 128 WARPS: tile and ``u``, then warp, ``g``, ``q``, ``f``, ``s``) of each warp's group.

    ``group`` is that of the first warp; zeros from ``last`` on.
    """
    part = tl.arange(0, 2 * TILES)
    place = tl.arange(0, 128 * WARPS)
    mine = group + place // 128 * STRIP
    of_block = mine // STRIP % BLOCK_STRIPS + mine % STRIP * BLOCK_STRIPS
    first = ((mine // BLOCK_GROUPS * tiles)[None, :] + (tile * TILES + part // 2)[:, None]).to(tl.int64) * BLOCK_GROUPS
    offsets = (first + of_block[None, :]) * 256 + (part % 2 * 128)[:, None] + (place % 128)[None, :]
    return tl.load(words_ptr + offsets, mask=(mine < last)[None, :], other=0)


@triton.jit
def strips_of(scales_ptr, tile, strip, last, tiles, WARPS: tl.constexpr, TILES: tl.constexpr):
    """Words of two rows for each warp's strip (TILES x 128 WARPS: warp, ``g``, ``q``, group), the same for every ``q``.

    ``strip`` is that of the first warp; zeros from ``last`` on.
    """
    part = tl.arange(0, TILES)
    place = tl.arange(0, 128 * WARPS)
    mine = strip + place // 128
    first = ((mine // BLOCK_STRIPS * tiles)[None, :] + (tile * TILES + part)[:, None]).to(tl.int64) * BLOCK_STRIPS
    offsets = (first + (mine % BLOCK_STRIPS)[None, :]) * 32 + (place % 128 // 16 * 4 + place % 4)[None, :]
    offsets = tl.multiple_of(tl.max_contiguous(offsets, [1, 4]), [1, 4])
    return tl.load(scales_ptr + offsets, mask=(mine < last)[None, :], other=0)


@triton.jit
def of_group(
    words,
    TURN: tl.constexpr,
    WARPS: tl.constexpr,
    TILES: tl.constexpr,
    DTYPE: tl.constexpr,
):
    """Numbers of one group of ``strips_of``, as the sums lie (WARPS x 16 TILES x COLUMNS, fp32): of a row for every column."""
    even, odd = tl.split(words.reshape(TILES, WARPS, 8, 4, 2, 2))
    first, second = tl.split(odd if TURN % 2 == 1 else even)
    wide = halves(second if TURN >= 2 else first, DTYPE).to(tl.float32)
    wide = wide.permute(1, 0, 4, 2, 3)  # warp, tile, h, g, q
    wide = wide.reshape(WARPS, TILES * 16, 1, 4, 1).broadcast_to(WARPS, TILES * 16, 1, 4, 2)
    return wide.reshape(WARPS, TILES * 16, COLUMNS)


@triton.jit
def numbers_of(x_ptr, group, last, m, k, WARPS: tl.constexpr, SETS: tl.constexpr):
    """X in words (4 lines: ``u``, ``f``; then warp, column, ``q``, ``s``, ``p``) of each warp's groups.

    Columns are sets of rows: ``SETS`` groups that the warp takes one after the other.
    """
    ROWS: tl.constexpr = COLUMNS // SETS
    part = tl.arange(0, 4)
    place = tl.arange(0, 128 * WARPS)
    column = place % 128 // 16
    row = column % ROWS
    turn = column // ROWS
    mine = group + place // 128 * STRIP + turn % STRIP + turn // STRIP * STRIP * WARPS
    offsets = (row.to(tl.int64) * (k // 2) + mine * 64 + place % 16)[None, :] + (part * 16)[:, None]
    offsets = tl.multiple_of(tl.max_contiguous(offsets, [1, 4]), [1, 4])
    # Hints stand on each comparison: one that is always true is folded, and the hint of both with it.
    wanted = tl.max_constancy((row < m)[None, :], [1, 4]) & tl.max_constancy((mine < last)[None, :], [1, 4])
    return tl.load(x_ptr + offsets, mask=wanted, other=0)


@triton.jit
def as_left(
    words,
    WARPS: tl.constexpr,
    TILES: tl.constexpr,
    FORMAT: tl.constexpr,
    DTYPE: tl.constexpr,
    ASM: tl.constexpr,
):
    """Words as left operands (WARPS x 16 TILES x 128)."""
    words = halves(words, tl.int16)
    if FORMAT == "int4":
        c0, c1, c2, c3 = int4_codes(words, DTYPE, ASM)
    else:
        c0, c1, c2, c3 = uint4_codes(words, DTYPE, ASM)
    codes = tl.join(tl.join(c0, c1), tl.join(c2, c3))
    # tile, u, warp, g, q, f, s, e, h, p
    codes = codes.reshape(TILES, 2, WARPS, 8, 4, 2, 2, 2, 2, 2).permute(2, 0, 8, 3, 1, 5, 9, 4, 6, 7)
    return codes.reshape(WARPS, TILES * 16, 128)


@triton.jit
def as_right(numbers, WARPS: tl.constexpr, DTYPE: tl.constexpr):
    """X as right operands (WARPS x 128 x COLUMNS)."""
    # u, f, warp, column, q, s, p, e
    numbers = halves(numbers, DTYPE).reshape(2, 2, WARPS, 8, 4, 2, 2, 2)
    return numbers.permute(2, 0, 1, 6, 4, 5, 7, 3).reshape(WARPS, 128, COLUMNS)


@triton.jit
def begin_of(numbers, WARPS: tl.constexpr, FORMAT: tl.constexpr, DTYPE: tl.constexpr):
    """Where the sums of each column begin (WARPS x 16 x COLUMNS), the same for all tiles: what will be too much, taken off.

    Of uint4 it is that for each unit of the zero point and what stands with it.
    """
    units = tl.full((WARPS, 16, 128), -1.0 if FORMAT == "uint4" else -136.0, DTYPE)
    return tl.dot(units, as_right(numbers, WARPS, DTYPE), input_precision="ieee")


@triton.jit
def for_tiles(values, WARPS: tl.constexpr, TILES: tl.constexpr):
    """Numbers of 16 rows (WARPS x 16 x COLUMNS) for every tile (WARPS x 16 TILES x COLUMNS)."""
    values = values.reshape(WARPS, 1, 16, COLUMNS).broadcast_to(WARPS, TILES, 16, COLUMNS)
    return values.reshape(WARPS, TILES * 16, COLUMNS)


@triton.jit
def with_group(
    acc,
    words,
    scales,
    zeros,
    numbers,
    begin,
    chosen,
    TURN: tl.constexpr,
    SETS: tl.constexpr,
    WARPS: tl.constexpr,
    TILES: tl.constexpr,
    FORMAT: tl.constexpr,
    DTYPE: tl.constexpr,
    ASM: tl.constexpr,
):
    """``acc`` (WARPS x 16 TILES x COLUMNS) with the products of group ``TURN`` of each warp's strip.

    Its part of X is held by the columns of set ``chosen``.
    """
    begin = for_tiles(begin, WARPS, TILES)
    if FORMAT == "uint4":
        begin = begin * (of_group(zeros, TURN, WARPS, TILES, tl.int16) + 128.0)
    right = as_right(numbers, WARPS, DTYPE)
    sums = tl.dot(as_left(words, WARPS, TILES, FORMAT, DTYPE, ASM), right, acc=begin, input_precision="ieee")
    scaled = sums * of_group(scales, TURN, WARPS, TILES, tl.bfloat16) + acc
    if SETS == 1:
        return scaled
    return tl.where((tl.arange(0, COLUMNS) // (COLUMNS // SETS) == chosen)[None, None, :], scaled, acc)


@triton.jit
def few_rows(
    words_ptr,
    x_ptr,
    scales_ptr,
    zeros_ptr,
    c_ptr,
    parts_ptr,
    arrived_ptr,
    m,
    n,
    k,
    tiles,
    TILES: tl.constexpr,
    SETS: tl.constexpr,
    WARPS: tl.constexpr,
    SPLIT: tl.constexpr,
    FORMAT: tl.constexpr,
    DTYPE: tl.constexpr,
    ASM: tl.constexpr,
    AHEAD: tl.constexpr,
    X_AHEAD: tl.constexpr,
):
    """A part of K, of ``SPLIT``, of ``TILES`` tiles of 16 rows of W and all rows of X, up to ``COLUMNS / SETS``, a program.

    ``AHEAD`` groups of weights, 2 or 4, are held or on their way, and ``X_AHEAD`` times what the columns hold of X, 1 or 2.

    The last of the parts to arrive adds them up, always in the same order: ``parts`` has fp32 sums (programs / SPLIT x SPLIT x
    COLUMNS / SETS x 16 TILES), ``arrived`` a count for each that is 0 before and after.
    """
    ROWS: tl.constexpr = 16 * TILES
    KEPT: tl.constexpr = COLUMNS // SETS
    FAR: tl.constexpr = STRIP * WARPS
    part = tl.program_id(0) % SPLIT
    tile = tl.program_id(0) // SPLIT
    groups = k // 128
    strips = tl.cdiv(groups, STRIP)
    rounds = tl.cdiv(strips, WARPS)
    first = rounds * part // SPLIT * WARPS
    last = rounds * (part + 1) // SPLIT * WARPS
    stop = tl.minimum(last * STRIP, groups)
    start = first * STRIP
    # X first, which everything waits for and which is little; nothing waits before all of these are on their way.
    xs = numbers_of(x_ptr, start, stop, m, k, WARPS, SETS)
    scales = strips_of(scales_ptr, tile, first, strips, tiles, WARPS, TILES)
    zeros = scales
    if FORMAT == "uint4":
        zeros = strips_of(zeros_ptr, tile, first, strips, tiles, WARPS, TILES)
    w0 = words_of(words_ptr, tile, start, stop, tiles, WARPS, TILES)
    w1 = words_of(words_ptr, tile, start + 1, stop, tiles, WARPS, TILES)
    w2 = w0
    w3 = w1
    if AHEAD == 4:
        w2 = words_of(words_ptr, tile, start + 2, stop, tiles, WARPS, TILES)
        w3 = words_of(words_ptr, tile, start + 3, stop, tiles, WARPS, TILES)
    next_xs = xs
    if X_AHEAD == 2:
        next_xs = numbers_of(x_ptr, next_group(start, 0, SETS, FAR), stop, m, k, WARPS, SETS)
    begin = tl.zeros((WARPS, 16, COLUMNS), dtype=tl.float32)
    acc = tl.zeros((WARPS, ROWS, COLUMNS), dtype=tl.float32)
    chosen = SETS
    for strip in range(first, last, WARPS):
        next_scales = strips_of(scales_ptr, tile, strip + WARPS, strips, tiles, WARPS, TILES)
        next_zeros = next_scales
        if FORMAT == "uint4":
            next_zeros = strips_of(zeros_ptr, tile, strip + WARPS, strips, tiles, WARPS, TILES)
        for turn in tl.static_range(STRIP):
            group = strip * STRIP + turn
            following = next_group(group, turn, AHEAD, FAR)
            # Branches that are always taken keep loads where they stand: the compiler puts none off past one.
            if group < last * STRIP:
                if turn % SETS == 0:
                    if chosen == SETS:
                        chosen = 0
                        begin = begin_of(xs, WARPS, FORMAT, DTYPE)
                if turn % AHEAD == 0:
                    words = w0
                elif turn % AHEAD == 1:
                    words = w1
                elif turn % AHEAD == 2:
                    words = w2
                else:
                    words = w3
                acc = with_group(acc, words, scales, zeros, xs, begin, chosen, turn, SETS, WARPS, TILES, FORMAT, DTYPE, ASM)
                words = words_of(words_ptr, tile, following, stop, tiles, WARPS, TILES)
                if turn % AHEAD == 0:
                    w0 = words
                elif turn % AHEAD == 1:
                    w1 = words
                elif turn % AHEAD == 2:
                    w2 = words
                else:
                    w3 = words
                chosen += 1
                if turn + 1 == STRIP or (turn + 1) % SETS == 0:
                    after = next_group(group, turn, 1, FAR)
                    if chosen == SETS and after < last * STRIP:
                        if X_AHEAD == 2:
                            xs = next_xs
                            later = next_group(group, turn, 1 + SETS, FAR)
                            next_xs = numbers_of(x_ptr, later, stop, m, k, WARPS, SETS)
                        else:
                            xs = numbers_of(x_ptr, after, stop, m, k, WARPS, SETS)
        scales = next_scales
        zeros = next_zeros
    if KEPT == 1:
        found = tl.sum(tl.sum(acc, 2), 0).reshape(ROWS, 1)
    else:
        found = tl.sum(tl.sum(acc.reshape(WARPS, ROWS, SETS, KEPT), 2), 0)
    rows = tile * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, KEPT)
    c_ptrs = c_ptr + columns[None, :].to(tl.int64) * n + rows[:, None]
    wanted = (rows < n)[:, None] & (columns < m)[None, :]
    if SPLIT > 1:
        held_ptrs = parts_ptr + tile.to(tl.int64) * SPLIT * KEPT * ROWS
        held_ptrs += tl.arange(0, KEPT)[None, :] * ROWS + tl.arange(0, ROWS)[:, None]
        tl.store(held_ptrs + part * KEPT * ROWS, found, mask=wanted)
        tl.debug_barrier()  # every thread's part is written before one of them says so
        if tl.atomic_add(arrived_ptr + tile, 1, sem="acq_rel") == SPLIT - 1:
            total = tl.zeros((ROWS, KEPT), dtype=tl.float32)
            for each in tl.static_range(SPLIT):
                total += tl.load(held_ptrs + each * KEPT * ROWS, mask=wanted, other=0.0, cache_modifier=".cg")
            tl.store(c_ptrs, total.to(c_ptr.dtype.element_ty), mask=wanted)
            tl.store(arrived_ptr + tile, 0)
    else:
        tl.store(c_ptrs, found.to(c_ptr.dtype.element_ty), mask=wanted)
