"""C = X W^T for a few rows of X (bf16) and many of W (n x k, four bits): weights go from memory to the multiplier's registers.

Each warp takes 16 ``TILES`` rows of W and every ``WARPS``-th strip of four groups of 128 numbers along K, as a batch of
products of W X^T by ``mma.m16n8k16``: nothing passes through shared memory until the sums of the warps are added up at the end.

A warp goes from phase to phase, ``SETS`` groups each.  What a phase needs is loaded while the one before it is multiplied, into
one of two sets of variables by turns.  NVIDIA's assembler counts all loads that cross a branch on one counter, and waits for
all of them where the first is used: so a phase begins with what needs its X alone, then has the next one's loads, then its
products, with a branch between them that nothing is moved past.

The instruction has eight columns; ``COLUMNS`` is 8, or 16 by two of them.  Where X has fewer rows, they are rows of X by groups
of K (``SETS``): each group's product is right in the columns that hold its part of X, and those alone are added up.  The groups
of a phase then take the registers, the loads and the sum over K of one.

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
# ruff: noqa: ANN001, ANN201, N803, N806, RET505  # a constant condition needs its else: code after a return is compiled too

# See ``order``.
STRIP = tl.constexpr(order.STRIP)
BLOCK_STRIPS = tl.constexpr(order.BLOCK_STRIPS)
# Words of a tile: of a group, of a block, and of its rows' numbers in a block.
OF_GROUP = tl.constexpr(256)
OF_BLOCK = tl.constexpr(256 * order.BLOCK_STRIPS * order.STRIP)
OF_TILE = tl.constexpr(8 * order.BLOCK_STRIPS * order.STRIP)


@triton.jit
def halves(words, DTYPE: tl.constexpr):
    """The two numbers of 16 bits in each word, along a last axis; nothing to do in registers.

    Loops carry words, not halves, which the compiler would keep in a register each.
    """
    low, high = words.to(tl.int16), (words >> 16).to(tl.int16)
    return tl.join(low.to(DTYPE, bitcast=True), high.to(DTYPE, bitcast=True))


@triton.jit
def words_of(first_ptr, tiles, TILES: tl.constexpr, WARPS: tl.constexpr, SETS: tl.constexpr):
    """Words (2 TILES SETS x 128 WARPS: set, tile and ``u``, then warp, ``g``, ``q``, ``f``, ``s``) of a phase."""
    part = tl.arange(0, 2 * TILES * SETS)
    place = tl.arange(0, 128 * WARPS)
    warp = place // 128
    of_lane = warp // BLOCK_STRIPS * tiles * OF_BLOCK + warp % BLOCK_STRIPS * OF_GROUP + place % 128
    of_part = part // (2 * TILES) * (BLOCK_STRIPS * OF_GROUP) + part // 2 % TILES * OF_BLOCK + part % 2 * 128
    return tl.load(first_ptr + of_lane[None, :] + of_part[:, None])


@triton.jit
def rows_of(first_ptr, tiles, TILES: tl.constexpr, WARPS: tl.constexpr, SETS: tl.constexpr):
    """Words of two rows' numbers (32 SETS WARPS x TILES: warp, ``g``, ``q``, set) for a phase, the same for every ``q``.

    Each tile has a load of its own: of one for all, the compiler would bring the words to their lanes through shared memory.
    """
    place = tl.arange(0, 32 * SETS * WARPS)
    warp = place // (32 * SETS)
    of_lane = (warp // BLOCK_STRIPS * tiles * BLOCK_STRIPS + warp % BLOCK_STRIPS) * (8 * STRIP)
    of_lane += place % (32 * SETS) // (4 * SETS) * STRIP + place % SETS
    ptrs = first_ptr + tl.multiple_of(tl.max_contiguous(of_lane, [SETS]), [SETS])
    first = tl.load(ptrs)
    if TILES == 1:
        return first.expand_dims(1)
    else:
        second = tl.load(ptrs + OF_TILE)
        if TILES == 2:
            return tl.join(first, second)
        else:
            third, fourth = tl.load(ptrs + 2 * OF_TILE), tl.load(ptrs + 3 * OF_TILE)
            return tl.join(tl.join(first, third), tl.join(second, fourth)).reshape(32 * SETS * WARPS, TILES)


@triton.jit
def x_of(first_ptr, left, m, k, COLUMNS: tl.constexpr, WARPS: tl.constexpr, SETS: tl.constexpr, WHOLE: tl.constexpr):
    """X of a phase in words (COLUMNS / 8 x 4 lines: ``u``, ``f``; then warp, column, ``q``, ``s``, ``p``).

    Columns are sets of rows, one for each group; zeros where ``left`` groups or more follow the first warp's first.
    """
    ROWS: tl.constexpr = COLUMNS // SETS
    part = tl.arange(0, COLUMNS // 2)
    place = tl.arange(0, 128 * WARPS)
    column = (part // 4 * 8)[:, None] + (place % 128 // 16)[None, :]
    # Rows that X has not are its last once more, in columns that are not stored.
    row = tl.minimum(column % ROWS, m - 1)
    group = place // 128 * STRIP + column // ROWS
    of_lane = tl.multiple_of(tl.max_contiguous(row * (k // 2) + group * 64 + place % 16, [1, 4]), [1, 4])
    ptrs = first_ptr + of_lane + (part % 4 * 16)[:, None]
    if WHOLE:
        return tl.load(ptrs)
    else:
        return tl.load(ptrs, mask=tl.max_constancy(group < left, [1, 4]), other=0)


@triton.jit
def words_of_set(words, SET: tl.constexpr, TILES: tl.constexpr, WARPS: tl.constexpr, SETS: tl.constexpr):
    """Those of one group of each warp (2 TILES x 128 WARPS)."""
    if SETS == 1:
        return words
    elif SETS == 2:
        first, second = tl.split(words.reshape(2, 2 * TILES, 128 * WARPS).permute(1, 2, 0))
        return second if SET == 1 else first
    else:
        low, high = tl.split(words.reshape(2, 2, 2 * TILES, 128 * WARPS).permute(1, 2, 3, 0))
        even, odd = tl.split((high if SET >= 2 else low).permute(1, 2, 0))
        return odd if SET % 2 == 1 else even


@triton.jit
def rows_of_set(
    words,
    SET: tl.constexpr,
    TILES: tl.constexpr,
    COLUMNS: tl.constexpr,
    WARPS: tl.constexpr,
    SETS: tl.constexpr,
    DTYPE: tl.constexpr,
):
    """Numbers of ``rows_of`` for one group, as the sums lie (WARPS x 16 TILES x COLUMNS, fp32): of a row for every column."""
    if SETS == 1:
        words = words.reshape(WARPS, 8, 4, TILES).permute(3, 0, 1, 2)
    elif SETS == 2:
        first, second = tl.split(words.reshape(WARPS, 8, 4, 2, TILES).permute(4, 0, 1, 2, 3))
        words = second if SET == 1 else first
    else:
        even, odd = tl.split(words.reshape(WARPS, 8, 4, 2, 2, TILES).permute(5, 0, 1, 2, 3, 4))
        low, high = tl.split(odd if SET % 2 == 1 else even)
        words = high if SET >= 2 else low
    wide = halves(words, DTYPE).to(tl.float32).permute(1, 0, 4, 2, 3)  # warp, tile, h, g, q
    wide = wide.reshape(WARPS, TILES * 16, 1, 4, 1).broadcast_to(WARPS, TILES * 16, COLUMNS // 8, 4, 2)
    return wide.reshape(WARPS, TILES * 16, COLUMNS)


@triton.jit
def as_left(words, TILES: tl.constexpr, WARPS: tl.constexpr, FORMAT: tl.constexpr, DTYPE: tl.constexpr, ASM: tl.constexpr):
    """Words of a group as left operands (WARPS x 16 TILES x 128)."""
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
def as_right(xs, COLUMNS: tl.constexpr, WARPS: tl.constexpr, DTYPE: tl.constexpr):
    """X as right operands (WARPS x 128 x COLUMNS)."""
    # column / 8, u, f, warp, column % 8, q, s, p, e
    xs = halves(xs, DTYPE).reshape(COLUMNS // 8, 2, 2, WARPS, 8, 4, 2, 2, 2)
    return xs.permute(3, 1, 2, 7, 5, 6, 8, 0, 4).reshape(WARPS, 128, COLUMNS)


@triton.jit
def begin_of(xs, COLUMNS: tl.constexpr, WARPS: tl.constexpr, FORMAT: tl.constexpr, DTYPE: tl.constexpr):
    """Where the sums of each column begin (WARPS x 16 x COLUMNS), the same for all tiles: what will be too much, taken off.

    Of uint4 it is that for each unit of the zero point and what stands with it.

    Loads stand behind it, and each product of a chain waits for the one before: there are two chains, of 8 columns two halves
    of K, of 16 the columns themselves.
    """
    CHAINS: tl.constexpr = 2 if COLUMNS == 8 else 1
    OF_CHAIN: tl.constexpr = 128 // CHAINS
    units = tl.full((CHAINS * WARPS, 16, OF_CHAIN), -1.0 if FORMAT == "uint4" else -136.0, DTYPE)
    right = as_right(xs, COLUMNS, WARPS, DTYPE).reshape(WARPS, CHAINS, OF_CHAIN, COLUMNS).permute(1, 0, 2, 3)
    sums = tl.dot(units, right.reshape(CHAINS * WARPS, OF_CHAIN, COLUMNS), input_precision="ieee")
    return tl.sum(sums.reshape(CHAINS, WARPS, 16, COLUMNS), 0)


@triton.jit
def plus_phase(
    acc,
    words,
    scales,
    zeros,
    xs,
    begin,
    TILES: tl.constexpr,
    COLUMNS: tl.constexpr,
    WARPS: tl.constexpr,
    SETS: tl.constexpr,
    FORMAT: tl.constexpr,
    DTYPE: tl.constexpr,
    ASM: tl.constexpr,
):
    """``acc`` (WARPS x 16 TILES x COLUMNS) with the products of a phase: of a group in the columns that hold its part of X."""
    begin = begin.reshape(WARPS, 1, 16, COLUMNS).broadcast_to(WARPS, TILES, 16, COLUMNS).reshape(WARPS, TILES * 16, COLUMNS)
    right = as_right(xs, COLUMNS, WARPS, DTYPE)
    for chosen in tl.static_range(SETS):
        sums = begin
        if FORMAT == "uint4":
            sums = begin * (rows_of_set(zeros, chosen, TILES, COLUMNS, WARPS, SETS, tl.int16) + 128.0)
        left = as_left(words_of_set(words, chosen, TILES, WARPS, SETS), TILES, WARPS, FORMAT, DTYPE, ASM)
        sums = tl.dot(left, right, acc=sums, input_precision="ieee")
        scaled = sums * rows_of_set(scales, chosen, TILES, COLUMNS, WARPS, SETS, tl.bfloat16) + acc
        if SETS == 1:
            acc = scaled
        else:
            acc = tl.where((tl.arange(0, COLUMNS) // (COLUMNS // SETS) == chosen)[None, None, :], scaled, acc)
    return acc


@triton.jit
def loads_of(
    phase,
    words_ptr,
    x_ptr,
    scales_ptr,
    zeros_ptr,
    tile,
    tiles,
    m,
    k,
    TILES: tl.constexpr,
    COLUMNS: tl.constexpr,
    WARPS: tl.constexpr,
    SETS: tl.constexpr,
    WHOLE: tl.constexpr,
    FORMAT: tl.constexpr,
):
    """All that a phase takes: words, scales, zero points (of int4 the scales once more) and X.

    What all programs have in common of an address is one number, what a lane has is the same in every phase, and what a
    register has is a constant of its load.
    """
    OF_STRIP: tl.constexpr = STRIP // SETS
    turn = phase // OF_STRIP
    group = (phase - turn * OF_STRIP) * SETS
    strip = turn * WARPS
    xs = x_of(x_ptr + (strip * STRIP + group) * 64, k // 128 - strip * STRIP - group, m, k, COLUMNS, WARPS, SETS, WHOLE)
    block = strip // BLOCK_STRIPS
    strip -= block * BLOCK_STRIPS
    at = (block * tiles + tile * TILES).to(tl.int64)
    first = tl.multiple_of(at * OF_TILE + strip * (8 * STRIP) + group, SETS)
    scales = rows_of(scales_ptr + first, tiles, TILES, WARPS, SETS)
    zeros = scales
    if FORMAT == "uint4":
        zeros = rows_of(zeros_ptr + first, tiles, TILES, WARPS, SETS)
    first = at * OF_BLOCK + (strip + group * BLOCK_STRIPS) * OF_GROUP
    words = words_of(words_ptr + tl.multiple_of(first, 128), tiles, TILES, WARPS, SETS)
    return words, scales, zeros, xs


@triton.jit
def of_warps(acc, ROWS: tl.constexpr, KEPT: tl.constexpr, WARPS: tl.constexpr):
    """The sum (ROWS x KEPT) of what each warp has: half of them give theirs to the other half, until one is left."""
    if WARPS == 1:
        return acc.reshape(ROWS, KEPT)
    else:
        low, high = tl.split(acc.reshape(2, WARPS // 2, ROWS, KEPT).permute(1, 2, 3, 0))
        return of_warps(low + high, ROWS, KEPT, WARPS // 2)


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
    beyond,
    TILES: tl.constexpr,
    COLUMNS: tl.constexpr,
    SETS: tl.constexpr,
    WARPS: tl.constexpr,
    SPLIT: tl.constexpr,
    WHOLE: tl.constexpr,
    FORMAT: tl.constexpr,
    DTYPE: tl.constexpr,
    ASM: tl.constexpr,
):
    """A part of K, of ``SPLIT``, of ``TILES`` tiles of 16 rows of W and all rows of X, up to ``COLUMNS / SETS``, a program.

    ``beyond`` is past every phase: branches on it are always taken, which the compiler does not know.

    The last of the parts to arrive adds them up, always in the same order: ``parts`` has fp32 sums (programs / SPLIT x SPLIT x
    COLUMNS / SETS x 16 TILES), ``arrived`` a count for each that is 0 before and after.
    """
    ROWS: tl.constexpr = 16 * TILES
    KEPT: tl.constexpr = COLUMNS // SETS
    OF_STRIP: tl.constexpr = STRIP // SETS
    part = tl.program_id(0) % SPLIT
    tile = tl.program_id(0) // SPLIT
    rounds = tl.cdiv(tl.cdiv(k // 128, STRIP), WARPS)
    first = rounds * part // SPLIT * OF_STRIP
    last = rounds * (part + 1) // SPLIT * OF_STRIP
    words, scales, zeros, xs = loads_of(
        first, words_ptr, x_ptr, scales_ptr, zeros_ptr, tile, tiles, m, k, TILES, COLUMNS, WARPS, SETS, WHOLE, FORMAT
    )
    words_b, scales_b, zeros_b, xs_b = words, scales, zeros, xs
    acc = tl.zeros((WARPS, ROWS, COLUMNS), dtype=tl.float32)
    for phase in range(first, last, 2):
        begin = begin_of(xs, COLUMNS, WARPS, FORMAT, DTYPE)
        if phase < beyond:
            if phase + 1 < last:
                words_b, scales_b, zeros_b, xs_b = loads_of(
                    phase + 1, words_ptr, x_ptr, scales_ptr, zeros_ptr, tile, tiles, m, k,
                    TILES, COLUMNS, WARPS, SETS, WHOLE, FORMAT,
                )  # fmt: skip
            if phase + 1 < beyond:
                acc = plus_phase(acc, words, scales, zeros, xs, begin, TILES, COLUMNS, WARPS, SETS, FORMAT, DTYPE, ASM)
                if phase + 1 < last:
                    begin = begin_of(xs_b, COLUMNS, WARPS, FORMAT, DTYPE)
                    if phase + 2 < beyond:
                        if phase + 2 < last:
                            words, scales, zeros, xs = loads_of(
                                phase + 2, words_ptr, x_ptr, scales_ptr, zeros_ptr, tile, tiles, m, k,
                                TILES, COLUMNS, WARPS, SETS, WHOLE, FORMAT,
                            )  # fmt: skip
                        if phase + 3 < beyond:
                            acc = plus_phase(
                                acc, words_b, scales_b, zeros_b, xs_b, begin, TILES, COLUMNS, WARPS, SETS, FORMAT, DTYPE, ASM
                            )
    if KEPT == 1:
        acc = tl.sum(acc, 2)
    elif SETS > 1:
        acc = tl.sum(acc.reshape(WARPS, ROWS, SETS, KEPT), 2)
    found = of_warps(acc.reshape(WARPS, ROWS, KEPT), ROWS, KEPT, WARPS)
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
