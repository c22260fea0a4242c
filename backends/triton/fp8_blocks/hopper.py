"""Products of fp8 in scaled blocks for Hopper in Gluon: one warp loads, two groups of four warps multiply in turns.

A program takes tiles of 128 rows, 64 to each group of warps, and goes through K in blocks of 128: what has one scale.  The
tensor core sums a block by itself; its sums are then added up in fp32, times their scales, while other sums are multiplied
(DeepSeek-V3 technical report, section 3.3.2, "increasing accumulation precision").  Copies are TMA's, and every buffer has a
barrier for full and one for empty; C is stored through buffers of its own, while the next tile is multiplied.

Rows are of one product (``DENSE``: tiles are where arithmetic puts them) or of groups that each have a B, whose tiles stand in
the list of ``backends.triton.grouped.kernels.schedule``.  Scales of A are (k / 128 x scale_rows), of B (n / 128 of each group x
k / 128).  A tile is cut along N into parts of 128 columns at most: what has one scale of B, and sums in 64 registers.

What keeps the tensor core at work while sums are added up is said by ``SUMS``: ``apart`` leaves it to chance which group
multiplies when; ``turns`` has one group hand over when half of its block is multiplied; ``pairs`` has each group multiply two
blocks at once, of which one is added up while the other is multiplied: only tiles of one part have the registers.

Scales of A come with their block (``STAGED``, not for pairs) or are loaded by who multiplies, a block or two before.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from backends.triton.gemm.kernels import tile_of

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803, N806

ROWS = gl.constexpr(64)  # of one group of warps: what a wgmma multiplies
BLOCK = gl.constexpr(128)  # numbers along K that have one scale
TALL = gl.constexpr(1073741824)  # see ``backends.triton.gemm.ragged``
VARIED = ["m", "n", "k", "scale_rows"]


@gluon.jit
def rows_of_tiles(sizes, DENSE: gl.constexpr):
    """How many tiles stand above each other."""
    _ends_ptr, list_ptr, m, _n, _k = sizes
    return gl.cdiv(m, 2 * ROWS) if DENSE else gl.load(list_ptr)


@gluon.jit
def place_of(number, tiles_m, sizes, BLOCK_N: gl.constexpr, GROUP: gl.constexpr, DENSE: gl.constexpr):
    """Group, first row and end of a tile's rows, and its first column."""
    ends_ptr, list_ptr, m, n, _k = sizes
    tile_m, tile_n = tile_of(number, tiles_m, gl.cdiv(n, BLOCK_N), GROUP)
    if DENSE:
        group = gl.to_tensor(0)
        row = tile_m * (2 * ROWS)
        end = m
    else:
        group = gl.load(list_ptr + 1 + 2 * tile_m)
        row = gl.load(list_ptr + 2 + 2 * tile_m)
        end = gl.load(ends_ptr + group)
    return group, row, end, tile_n * BLOCK_N


@gluon.jit
def after(stage, phase, STAGES: gl.constexpr):
    """The next buffer and how often it was gone through, odd or even."""
    last = stage == STAGES - 1
    return gl.where(last, 0, stage + 1), phase ^ last.to(gl.int32)


@gluon.jit
def load_all(
    a,
    b,
    a_scale,
    buffers,
    sizes,
    BLOCK_N: gl.constexpr,
    GROUP: gl.constexpr,
    STAGES: gl.constexpr,
    DENSE: gl.constexpr,
    STAGED: gl.constexpr,
):
    """What the loading warp does: both halves of A and all parts of B, block by block, for every tile of this program."""
    a_smem, b_smem, scale_smem, full, empty = buffers
    k = sizes[4]
    n = sizes[3]
    PARTS: gl.constexpr = BLOCK_N // b.block_shape[0]
    SCALE_BYTES: gl.constexpr = 2 * ROWS * 4 if STAGED else 0
    tiles_m = rows_of_tiles(sizes, DENSE)
    tiles = tiles_m * gl.cdiv(n, BLOCK_N)
    stage = gl.to_tensor(0)
    phase = gl.to_tensor(1)
    for number in range(gl.program_id(0), tiles, gl.num_programs(0)):
        group, row, _end, column = place_of(number, tiles_m, sizes, BLOCK_N, GROUP, DENSE)
        b_row = group * n + column
        for start in range(0, k, BLOCK):
            mbarrier.wait(empty.index(stage), phase)
            mbarrier.expect(full.index(stage), 2 * a.block_type.nbytes + PARTS * b.block_type.nbytes + SCALE_BYTES)
            tma.async_copy_global_to_shared(a, [row, start], full.index(stage), a_smem.index(2 * stage))
            tma.async_copy_global_to_shared(a, [row + ROWS, start], full.index(stage), a_smem.index(2 * stage + 1))
            if STAGED:
                at_k = start // BLOCK
                tma.async_copy_global_to_shared(a_scale, [at_k, row], full.index(stage), scale_smem.index(2 * stage))
                tma.async_copy_global_to_shared(a_scale, [at_k, row + ROWS], full.index(stage), scale_smem.index(2 * stage + 1))
            for part in gl.static_range(PARTS):
                at = [b_row + part * b.block_shape[0], start]
                tma.async_copy_global_to_shared(b, at, full.index(stage), b_smem.index(PARTS * stage + part))
            stage, phase = after(stage, phase, STAGES)


@gluon.jit
def products_of(a_smem, b_smem, a_index, b_index, LAYOUT: gl.constexpr):
    """The sums of one block of K, on their way."""
    WIDTH: gl.constexpr = b_smem.shape[1]
    none = gl.zeros([ROWS, WIDTH], gl.float32, LAYOUT)
    return warpgroup_mma(a_smem.index(a_index), b_smem.index(b_index).permute([1, 0]), none, use_acc=False, is_async=True)


@gluon.jit
def products_in_turn(a_smem, b_smem, a_index, b_index, turns, turn, SELF: gl.constexpr, LAYOUT: gl.constexpr):
    """The sums of one block of K, which the other group's follow when half of them is there."""
    HALF: gl.constexpr = BLOCK // 2
    WIDTH: gl.constexpr = b_smem.shape[1]
    none = gl.zeros([ROWS, WIDTH], gl.float32, LAYOUT)
    a_tile = a_smem.index(a_index)
    b_tile = b_smem.index(b_index)
    mbarrier.wait(turns.index(SELF), turn)
    first = b_tile.slice(0, HALF, dim=1).permute([1, 0])
    sums = warpgroup_mma(a_tile.slice(0, HALF, dim=1), first, none, use_acc=False, is_async=True)
    second = b_tile.slice(HALF, HALF, dim=1).permute([1, 0])
    sums = warpgroup_mma(a_tile.slice(HALF, HALF, dim=1), second, sums, is_async=True)
    sums = warpgroup_mma_wait(1, deps=[sums])
    mbarrier.arrive(turns.index(1 - SELF))
    return warpgroup_mma_wait(0, deps=[sums])


@gluon.jit
def store(c, c_smem, acc, row, end, column, SELF: gl.constexpr):
    """Rows before ``end`` of one part, once the part before has left its buffer."""
    WIDTH: gl.constexpr = c_smem.shape[4]
    c_tile = c_smem.index(SELF)
    tma.store_wait(0)
    c_tile.reshape([ROWS, WIDTH]).store(acc.to(c_smem.dtype))
    fence_async_shared()
    left = gl.minimum(end - row, ROWS)
    if left > 0:
        tma.async_copy_shared_to_global(c, [TALL, row + left, TALL - left, column], c_tile)


@gluon.jit
def scale_of(a_scales, b_scales, rows, end, block, blocks, scale_rows):
    """Scales of a block of K, or of the last: of rows of A, and of a part of B."""
    at = gl.minimum(block, blocks - 1)
    return gl.load(a_scales + at.to(gl.int64) * scale_rows, mask=rows < end, other=0.0), gl.load(b_scales + at)


@gluon.jit
def multiply_parts(
    c,
    c_smem,
    turns,
    buffers,
    scales,
    sizes,
    SELF: gl.constexpr,
    BLOCK_N: gl.constexpr,
    GROUP: gl.constexpr,
    STAGES: gl.constexpr,
    DENSE: gl.constexpr,
    IN_TURN: gl.constexpr,
    STAGED: gl.constexpr,
):
    """What one group of four warps does: its half of each tile's rows, part by part."""
    a_smem, b_smem, scale_smem, full, empty = buffers
    a_scale_ptr, b_scale_ptr, scale_rows = scales
    k = sizes[4]
    n = sizes[3]
    PART: gl.constexpr = b_smem.shape[1]
    PARTS: gl.constexpr = BLOCK_N // PART
    LAYOUT: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, PART, 32])
    ROW_LAYOUT: gl.constexpr = gl.SliceLayout(1, LAYOUT)
    tiles_m = rows_of_tiles(sizes, DENSE)
    tiles = tiles_m * gl.cdiv(n, BLOCK_N)
    blocks = k // BLOCK
    stage = gl.to_tensor(0)
    phase = gl.to_tensor(0)
    turn = gl.to_tensor(0)
    for number in range(gl.program_id(0), tiles, gl.num_programs(0)):
        group, top, end, column = place_of(number, tiles_m, sizes, BLOCK_N, GROUP, DENSE)
        row = top + SELF * ROWS
        rows = row + gl.arange(0, ROWS, ROW_LAYOUT)
        b_scales = b_scale_ptr + ((group * n + column) // BLOCK).to(gl.int64) * blocks
        acc = gl.zeros([ROWS, PART], gl.float32, LAYOUT)
        b_scale = gl.load(b_scales)
        if not STAGED:
            a_scale = gl.load(a_scale_ptr + rows, mask=rows < end, other=0.0)
        right = acc
        right_scales = b_scales
        right_scale = b_scale
        if PARTS == 2:
            # Those of the second part, or again of the first where there is none.
            right_scales = b_scales + gl.where(column + PART < n, blocks, 0)
            right_scale = gl.load(right_scales)
        for block in range(blocks):
            mbarrier.wait(full.index(stage), phase)
            # The next block's scales are on their way while this one is multiplied.
            ahead = gl.minimum(block + 1, blocks - 1)
            next_b = gl.load(b_scales + ahead)
            if STAGED:
                a_scale = scale_smem.index(2 * stage + SELF).reshape([ROWS]).load(ROW_LAYOUT)
            else:
                next_a = gl.load(a_scale_ptr + ahead.to(gl.int64) * scale_rows + rows, mask=rows < end, other=0.0)
            if IN_TURN:
                sums = products_in_turn(a_smem, b_smem, 2 * stage + SELF, PARTS * stage, turns, turn, SELF, LAYOUT)
                turn = turn ^ 1
            else:
                sums = products_of(a_smem, b_smem, 2 * stage + SELF, PARTS * stage, LAYOUT)
                sums = warpgroup_mma_wait(0, deps=[sums])
            if PARTS == 1:
                mbarrier.arrive(empty.index(stage))
            acc = acc + sums * (a_scale * b_scale)[:, None]
            if PARTS == 2:
                next_right = gl.load(right_scales + ahead)
                if block == blocks - 1:  # it leaves its buffer while the last sums of the second part are multiplied
                    store(c, c_smem, acc, row, end, column, SELF)
                if IN_TURN:
                    sums = products_in_turn(a_smem, b_smem, 2 * stage + SELF, PARTS * stage + 1, turns, turn, SELF, LAYOUT)
                    turn = turn ^ 1
                else:
                    mbarrier.wait(full.index(stage), phase)  # passed at once: these sums need the registers of those before
                    sums = products_of(a_smem, b_smem, 2 * stage + SELF, PARTS * stage + 1, LAYOUT)
                    sums = warpgroup_mma_wait(0, deps=[sums])
                mbarrier.arrive(empty.index(stage))
                right = right + sums * (a_scale * right_scale)[:, None]
                right_scale = next_right
            if not STAGED:
                a_scale = next_a
            b_scale = next_b
            stage, phase = after(stage, phase, STAGES)
        if PARTS == 2:
            store(c, c_smem, right, row, end, column + PART, SELF)
        else:
            store(c, c_smem, acc, row, end, column, SELF)
    tma.store_wait(0)


@gluon.jit
def multiply_pairs(
    c,
    c_smem,
    buffers,
    scales,
    sizes,
    SELF: gl.constexpr,
    BLOCK_N: gl.constexpr,
    GROUP: gl.constexpr,
    STAGES: gl.constexpr,
    DENSE: gl.constexpr,
):
    """What one group of four warps does: its half of each tile's rows, two blocks at once, the first added up meanwhile.

    No sums are on their way from one turn of the loop to the next: the assembler would wait for each instruction by itself.
    """
    a_smem, b_smem, _scale_smem, full, empty = buffers
    a_scale_ptr, b_scale_ptr, scale_rows = scales
    k = sizes[4]
    n = sizes[3]
    LAYOUT: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BLOCK_N, 32])
    ROW_LAYOUT: gl.constexpr = gl.SliceLayout(1, LAYOUT)
    tiles_m = rows_of_tiles(sizes, DENSE)
    tiles = tiles_m * gl.cdiv(n, BLOCK_N)
    blocks = k // BLOCK
    stage = gl.to_tensor(0)
    phase = gl.to_tensor(0)
    for number in range(gl.program_id(0), tiles, gl.num_programs(0)):
        group, top, end, column = place_of(number, tiles_m, sizes, BLOCK_N, GROUP, DENSE)
        row = top + SELF * ROWS
        rows = row + gl.arange(0, ROWS, ROW_LAYOUT)
        a_scales = a_scale_ptr + rows
        b_scales = b_scale_ptr + ((group * n + column) // BLOCK).to(gl.int64) * blocks
        acc = gl.zeros([ROWS, BLOCK_N], gl.float32, LAYOUT)
        even_a, even_b = scale_of(a_scales, b_scales, rows, end, 0, blocks, scale_rows)
        odd_a, odd_b = scale_of(a_scales, b_scales, rows, end, 1, blocks, scale_rows)
        for pair in range(blocks // 2):
            second, second_phase = after(stage, phase, STAGES)
            mbarrier.wait(full.index(stage), phase)
            even = products_of(a_smem, b_smem, 2 * stage + SELF, stage, LAYOUT)
            mbarrier.wait(full.index(second), second_phase)
            odd = products_of(a_smem, b_smem, 2 * second + SELF, second, LAYOUT)
            even_scale = even_a * even_b
            odd_scale = odd_a * odd_b
            even_a, even_b = scale_of(a_scales, b_scales, rows, end, 2 * pair + 2, blocks, scale_rows)
            odd_a, odd_b = scale_of(a_scales, b_scales, rows, end, 2 * pair + 3, blocks, scale_rows)
            even = warpgroup_mma_wait(1, deps=[even])
            mbarrier.arrive(empty.index(stage))
            acc = acc + even * even_scale[:, None]
            acc, odd = warpgroup_mma_wait(0, deps=[acc, odd])
            mbarrier.arrive(empty.index(second))
            acc = acc + odd * odd_scale[:, None]
            stage, phase = after(second, second_phase, STAGES)
        if blocks % 2 == 1:
            mbarrier.wait(full.index(stage), phase)
            even = products_of(a_smem, b_smem, 2 * stage + SELF, stage, LAYOUT)
            even = warpgroup_mma_wait(0, deps=[even])
            mbarrier.arrive(empty.index(stage))
            acc = acc + even * (even_a * even_b)[:, None]
            stage, phase = after(stage, phase, STAGES)
        store(c, c_smem, acc, row, end, column, SELF)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=VARIED)
def blocks_on_hopper(
    a,
    b,
    c,
    a_scale,
    b_scale_ptr,
    ends_ptr,
    list_ptr,
    m,
    n,
    k,
    scale_rows,
    BLOCK_N: gl.constexpr,
    GROUP: gl.constexpr,
    STAGES: gl.constexpr,
    REGISTERS: gl.constexpr,
    SUMS: gl.constexpr,
    DENSE: gl.constexpr,
    STAGED: gl.constexpr,
):
    """Descriptors have blocks of ``[ROWS, BLOCK]`` for A, ``[PART, BLOCK]`` for B, ``[1, 1, ROWS, PART]`` for C.

    ``a_scale`` is a descriptor of blocks of ``[1, ROWS]`` where ``STAGED``, else a pointer.  ``ends_ptr`` and ``list_ptr`` are
    read only where there are groups.
    """
    PART: gl.constexpr = b.block_shape[0]
    PARTS: gl.constexpr = BLOCK_N // PART
    gl.static_assert(PARTS == 1 or (PARTS == 2 and PART == BLOCK), "a part has one scale of B for each block of K")
    a_smem = gl.allocate_shared_memory(a.dtype, [2 * STAGES, ROWS, BLOCK], a.layout)
    b_smem = gl.allocate_shared_memory(b.dtype, [PARTS * STAGES, PART, BLOCK], b.layout)
    scale_smem = a_smem  # read only where scales come with their block
    if STAGED:
        scale_smem = gl.allocate_shared_memory(gl.float32, [2 * STAGES, 1, ROWS], a_scale.layout)
    c_smem = gl.allocate_shared_memory(c.dtype, [2, 1, 1, ROWS, PART], c.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    turns = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=2)
    for group in gl.static_range(2):
        mbarrier.init(turns.index(group), count=1)
    fence_async_shared()
    sizes = (ends_ptr, list_ptr, m, n, k)
    buffers = (a_smem, b_smem, scale_smem, full, empty)
    scales = (a_scale, b_scale_ptr, scale_rows)
    if SUMS == "pairs":
        gl.static_assert(not STAGED, "pairs load their scales")
        gl.static_assert(PARTS == 1, "two sums beside those of two parts have no room in registers")
        gl.warp_specialize(
            [
                (multiply_pairs, (c, c_smem, buffers, scales, sizes, 0, BLOCK_N, GROUP, STAGES, DENSE)),
                (multiply_pairs, (c, c_smem, buffers, scales, sizes, 1, BLOCK_N, GROUP, STAGES, DENSE)),
                (load_all, (a, b, a_scale, buffers, sizes, BLOCK_N, GROUP, STAGES, DENSE, STAGED)),
            ],
            [4, 1],
            [REGISTERS, 24],
        )
    else:
        IN_TURN: gl.constexpr = SUMS == "turns"
        if IN_TURN:
            mbarrier.arrive(turns.index(0))
        gl.warp_specialize(
            [
                (multiply_parts, (c, c_smem, turns, buffers, scales, sizes, 0, BLOCK_N, GROUP, STAGES, DENSE, IN_TURN, STAGED)),
                (multiply_parts, (c, c_smem, turns, buffers, scales, sizes, 1, BLOCK_N, GROUP, STAGES, DENSE, IN_TURN, STAGED)),
                (load_all, (a, b, a_scale, buffers, sizes, BLOCK_N, GROUP, STAGES, DENSE, STAGED)),
            ],
            [4, 1],
            [REGISTERS, 24],
        )
