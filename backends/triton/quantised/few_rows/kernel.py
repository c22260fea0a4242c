"""C = X W^T for a few rows of X (bf16) and many of W (n x k, four bits): weights go from memory to the multiplier's registers.

Each warp takes 16 ``TILES`` rows of W and every ``WARPS``-th group of 128 numbers along K, as a batch of products of W X^T by
``mma.m16n8k16``: nothing passes through shared memory until the sums of the warps are added up at the end.  Loads of the next
group are under way while one is multiplied: the loop's own variables are the buffers.

Codes enter the product as 128 + code (or 136 + number), bf16 that are exact; what is too much, that times the sum of X over the
group, is taken off the group's sums, and the scale is applied to those: a weight costs an instruction, not three.

Names of axes of a group, ``order`` has them in memory: of its 128 numbers ``u`` (2), ``f`` (2), ``q`` (4), ``s`` (2), ``p`` (2)
and ``e`` (2) from the slowest to the fastest; of a tile's 16 rows ``h`` (2) and ``g`` (8).
"""

import triton
import triton.language as tl

from backends.triton.quantised.convert import int4_codes, uint4_codes

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803, N806, SIM102, SIM108  # a constant condition stands alone: what it excludes is not compiled


@triton.jit
def halves(words, DTYPE: tl.constexpr):
    """The two numbers of 16 bits in each word, along a last axis; nothing to do in registers.

    Loops carry words, not halves, which the compiler would keep in a register each.
    """
    low, high = words.to(tl.int16), (words >> 16).to(tl.int16)
    return tl.join(low.to(DTYPE, bitcast=True), high.to(DTYPE, bitcast=True))


@triton.jit
def words_of(words_ptr, tile, group, last, groups, WARPS: tl.constexpr, TILES: tl.constexpr):
    """Words (2 TILES x 128 WARPS: tile and ``u``, then warp, ``g``, ``q``, ``f``, ``s``) of each warp's group."""
    part = tl.arange(0, 2 * TILES)
    place = tl.arange(0, 128 * WARPS)
    first = (tile * TILES + part // 2).to(tl.int64) * groups
    mine = group + place // 128
    offsets = (first[:, None] + mine[None, :]) * 256 + (part % 2 * 128)[:, None] + (place % 128)[None, :]
    return tl.load(words_ptr + offsets, mask=(mine < last)[None, :], other=0)


@triton.jit
def numbers_of(x_ptr, group, last, m, k, WARPS: tl.constexpr, COLUMNS: tl.constexpr):
    """X in words (COLUMNS / 8 x 4 lines: ``u``, ``f``; then warp, row of X, ``q``, ``s``, ``p``) of each warp's group."""
    part = tl.arange(0, COLUMNS // 2)
    place = tl.arange(0, 128 * WARPS)
    mine = group + place // 128
    row = (part // 4 * 8)[:, None] + (place % 128 // 16)[None, :]
    offsets = row.to(tl.int64) * (k // 2) + (part % 4 * 16)[:, None] + (mine * 64 + place % 16)[None, :]
    offsets = tl.multiple_of(tl.max_contiguous(offsets, [1, 4]), [1, 4])
    return tl.load(x_ptr + offsets, mask=tl.max_constancy((row < m) & (mine < last)[None, :], [1, 4]), other=0)


@triton.jit
def per_row(scales_ptr, tile, group, last, groups, WARPS: tl.constexpr, TILES: tl.constexpr):
    """What each row has of each warp's group (TILES x 64 WARPS: warp, ``g``, ``q``, ``h``), the same for every ``q``."""
    part = tl.arange(0, TILES)
    place = tl.arange(0, 64 * WARPS)
    mine = group + place // 64
    offsets = ((tile * TILES + part).to(tl.int64) * groups)[:, None] * 16
    offsets = offsets + (mine * 16 + place % 64 // 8 * 2 + place % 2)[None, :]
    offsets = tl.multiple_of(tl.max_contiguous(offsets, [1, 2]), [1, 2])
    return tl.load(scales_ptr + offsets, mask=(mine < last)[None, :], other=0)


@triton.jit
def beside_of(
    beside,
    tile,
    group,
    last,
    groups,
    m,
    k,
    WARPS: tl.constexpr,
    TILES: tl.constexpr,
    COLUMNS: tl.constexpr,
    FORMAT: tl.constexpr,
):
    """What the words of each warp's group are multiplied by, from caches: X, scales and zero points."""
    x_ptr, scales_ptr, zeros_ptr = beside
    numbers = numbers_of(x_ptr, group, last, m, k, WARPS, COLUMNS)
    scales = per_row(scales_ptr, tile, group, last, groups, WARPS, TILES)
    zeros = scales
    if FORMAT == "uint4":
        zeros = per_row(zeros_ptr, tile, group, last, groups, WARPS, TILES)
    return numbers, scales, zeros


@triton.jit
def for_sums(values, WARPS: tl.constexpr, TILES: tl.constexpr, COLUMNS: tl.constexpr):
    """``per_row`` as the sums lie (WARPS x 16 TILES x COLUMNS): of a row for every column."""
    wide = values.reshape(TILES, WARPS, 8, 4, 2).permute(1, 0, 4, 2, 3)  # warp, tile, h, g, q
    wide = wide.reshape(WARPS, TILES * 16, 1, 4, 1).broadcast_to(WARPS, TILES * 16, COLUMNS // 8, 4, 2)
    return wide.reshape(WARPS, TILES * 16, COLUMNS)


@triton.jit
def as_left(words, WARPS: tl.constexpr, TILES: tl.constexpr, FORMAT: tl.constexpr, DTYPE: tl.constexpr, ASM: tl.constexpr):
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
def as_right(numbers, WARPS: tl.constexpr, COLUMNS: tl.constexpr, DTYPE: tl.constexpr):
    """X as right operands (WARPS x 128 x COLUMNS)."""
    # column / 8, u, f, warp, column % 8, q, s, p, e
    numbers = halves(numbers, DTYPE).reshape(COLUMNS // 8, 2, 2, WARPS, 8, 4, 2, 2, 2)
    return numbers.permute(3, 1, 2, 7, 5, 6, 8, 0, 4).reshape(WARPS, 128, COLUMNS)


@triton.jit
def plus_group(
    acc,
    words,
    numbers,
    scales,
    zeros,
    ones,
    WARPS: tl.constexpr,
    TILES: tl.constexpr,
    COLUMNS: tl.constexpr,
    FORMAT: tl.constexpr,
    DTYPE: tl.constexpr,
    ASM: tl.constexpr,
):
    """``acc`` (WARPS x 16 TILES x COLUMNS) and the products of each warp's group."""
    xs = as_right(numbers, WARPS, COLUMNS, DTYPE)
    sums = tl.dot(as_left(words, WARPS, TILES, FORMAT, DTYPE, ASM), xs, input_precision="ieee")
    total = tl.dot(ones, xs, input_precision="ieee")  # of X, in every row
    total = total.reshape(WARPS, 1, 16, COLUMNS).broadcast_to(WARPS, TILES, 16, COLUMNS)
    total = total.reshape(WARPS, TILES * 16, COLUMNS)
    if FORMAT == "uint4":
        sums -= total * (for_sums(zeros, WARPS, TILES, COLUMNS).to(tl.float32) + 128.0)
    else:
        sums -= total * 136.0
    return acc + sums * for_sums(scales, WARPS, TILES, COLUMNS).to(tl.float32)


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
    TILES: tl.constexpr,
    COLUMNS: tl.constexpr,
    WARPS: tl.constexpr,
    SPLIT: tl.constexpr,
    FORMAT: tl.constexpr,
    DTYPE: tl.constexpr,
    ASM: tl.constexpr,
    AHEAD: tl.constexpr,
    SINGLE: tl.constexpr,
):
    """A part of K, of ``SPLIT``, of ``TILES`` tiles of 16 rows of W and all rows of X, up to ``COLUMNS``, a program.

    ``AHEAD`` groups of weights are held or on their way, two to four.  ``SINGLE`` says that X has one row.  The last of the
    parts to arrive adds them up, always in the same order: ``parts`` has fp32 sums (programs / SPLIT x SPLIT x COLUMNS x 16
    TILES), ``arrived`` a count for each that is 0 before and after.
    """
    ROWS: tl.constexpr = 16 * TILES
    STEP: tl.constexpr = AHEAD * WARPS
    part = tl.program_id(0) % SPLIT
    tile = tl.program_id(0) // SPLIT
    groups = k // 128
    turns = tl.cdiv(groups, WARPS)
    first = turns * part // SPLIT * WARPS
    last = turns * (part + 1) // SPLIT * WARPS
    stop = tl.minimum(last, groups)
    w0 = words_of(words_ptr, tile, first, stop, groups, WARPS, TILES)
    w1 = words_of(words_ptr, tile, first + WARPS, stop, groups, WARPS, TILES)
    w2 = w1
    w3 = w1
    if AHEAD > 2:
        w2 = words_of(words_ptr, tile, first + 2 * WARPS, stop, groups, WARPS, TILES)
    if AHEAD > 3:
        w3 = words_of(words_ptr, tile, first + 3 * WARPS, stop, groups, WARPS, TILES)
    beside = (x_ptr, scales_ptr, zeros_ptr)
    xs, scales, zeros = beside_of(beside, tile, first, stop, groups, m, k, WARPS, TILES, COLUMNS, FORMAT)
    ones = tl.full((WARPS, 16, 128), 1.0, DTYPE)
    acc = tl.zeros((WARPS, ROWS, COLUMNS), dtype=tl.float32)
    for group in range(first, last, STEP):
        # The branches keep loads where they stand: the compiler puts none off past one.
        acc = plus_group(acc, w0, xs, scales, zeros, ones, WARPS, TILES, COLUMNS, FORMAT, DTYPE, ASM)
        xs, scales, zeros = beside_of(beside, tile, group + WARPS, stop, groups, m, k, WARPS, TILES, COLUMNS, FORMAT)
        w0 = words_of(words_ptr, tile, group + STEP, stop, groups, WARPS, TILES)
        if group + WARPS < last:
            acc = plus_group(acc, w1, xs, scales, zeros, ones, WARPS, TILES, COLUMNS, FORMAT, DTYPE, ASM)
            xs, scales, zeros = beside_of(beside, tile, group + 2 * WARPS, stop, groups, m, k, WARPS, TILES, COLUMNS, FORMAT)
            w1 = words_of(words_ptr, tile, group + WARPS + STEP, stop, groups, WARPS, TILES)
        if AHEAD > 2:
            if group + 2 * WARPS < last:
                acc = plus_group(acc, w2, xs, scales, zeros, ones, WARPS, TILES, COLUMNS, FORMAT, DTYPE, ASM)
                xs, scales, zeros = beside_of(
                    beside, tile, group + 3 * WARPS, stop, groups, m, k, WARPS, TILES, COLUMNS, FORMAT
                )
                w2 = words_of(words_ptr, tile, group + 2 * WARPS + STEP, stop, groups, WARPS, TILES)
        if AHEAD > 3:
            if group + 3 * WARPS < last:
                acc = plus_group(acc, w3, xs, scales, zeros, ones, WARPS, TILES, COLUMNS, FORMAT, DTYPE, ASM)
                xs, scales, zeros = beside_of(
                    beside, tile, group + 4 * WARPS, stop, groups, m, k, WARPS, TILES, COLUMNS, FORMAT
                )
                w3 = words_of(words_ptr, tile, group + 3 * WARPS + STEP, stop, groups, WARPS, TILES)
    KEPT: tl.constexpr = 1 if SINGLE else COLUMNS
    if SINGLE:  # the other columns are zeros
        found = tl.sum(tl.sum(acc, 2), 0).reshape(ROWS, 1)
    else:
        found = tl.sum(acc, 0)
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
            whole = tl.zeros((ROWS, KEPT), dtype=tl.float32)
            for each in tl.static_range(SPLIT):
                whole += tl.load(held_ptrs + each * KEPT * ROWS, mask=wanted, other=0.0, cache_modifier=".cg")
            tl.store(c_ptrs, whole.to(c_ptr.dtype.element_ty), mask=wanted)
            tl.store(arrived_ptr + tile, 0)
    else:
        tl.store(c_ptrs, found.to(c_ptr.dtype.element_ty), mask=wanted)
