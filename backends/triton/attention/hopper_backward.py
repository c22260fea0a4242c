"""Attention's gradients for Hopper in Gluon: one warp loads, two groups of four warps hold 64 keys each.

A program takes 128 keys of one head and goes through the queries that see them, 64 at a time, over all query heads that share
the keys.  Scores stand keys by queries, so that weights and slopes are operands in registers of the products that give dV and
dK.  dQ wants the slopes of all 128 keys: both groups write theirs to shared memory, and the groups multiply in turn, one every
even block of queries, the other every odd one.  dQ is summed over programs by atomic additions in fp32, in no fixed order.

Five products, where two kernels of their own would compute scores and their slopes twice.  Names as in ``backward``.
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

from backends.triton.attention.hopper import flat
from backends.triton.attention.order import keys_of

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803, N806

ROWS = gl.constexpr(64)  # of queries at a time, and of keys of one group: what a wgmma multiplies
KEYS = gl.constexpr(128)


@gluon.jit
def load_all(q, k, v, do, begins, buffers, barriers, sizes, STAGES: gl.constexpr, LEFT: gl.constexpr, RIGHT: gl.constexpr):
    """What the loading warp does: the program's keys and values, then queries, dO and where sums begin, block by block."""
    q_smem, k_smem, v_smem, do_smem, _ds_smem, begins_smem = buffers
    LANES: gl.constexpr = gl.BlockedLayout([2 * ROWS // 32], [32], [1], [0])
    keys_full, rows_full, rows_empty, _ds_full, _ds_empty = barriers
    q_len, _kv_len, group, first, last, _scale_log2 = sizes
    kv_head, batch = gl.program_id(1), gl.program_id(2)
    column = gl.program_id(0) * KEYS
    begin, _whole_begin, _whole_end, end = keys_of(column, -last, -first, q_len, KEYS, ROWS, RIGHT, LEFT)
    blocks = gl.cdiv(end - begin, ROWS)
    in_head = gl.cdiv(q_len, ROWS)
    for w in gl.static_range(2):
        at = column + w * ROWS
        mbarrier.expect(keys_full.index(w), k.block_type.nbytes + v.block_type.nbytes)
        tma.async_copy_global_to_shared(k, [batch, kv_head, at, 0], keys_full.index(w), k_smem.index(w))
        tma.async_copy_global_to_shared(v, [batch, kv_head, at, 0], keys_full.index(w), v_smem.index(w))
    count = 0
    for member in range(group):
        head = kv_head * group + member
        here = begins + ((batch * gl.num_programs(1) * group + head).to(gl.int64) * in_head + begin // ROWS) * (2 * ROWS)
        for block in range(blocks):
            stage = count % STAGES
            phase = ((count // STAGES) & 1) ^ 1
            row = begin + block * ROWS
            mbarrier.wait(rows_empty.index(stage), phase)
            mbarrier.expect(rows_full.index(stage), q.block_type.nbytes + do.block_type.nbytes)
            tma.async_copy_global_to_shared(q, [batch, head, row, 0], rows_full.index(stage), q_smem.index(stage))
            tma.async_copy_global_to_shared(do, [batch, head, row, 0], rows_full.index(stage), do_smem.index(stage))
            begins_smem.index(stage).store(gl.load(here + gl.arange(0, 2 * ROWS, LANES)))
            mbarrier.arrive(rows_full.index(stage))
            here += 2 * ROWS
            count += 1


@gluon.jit
def beginning(held, LAYOUT: gl.constexpr):
    """A value of each of 64 queries, for all keys."""
    return held.load(gl.SliceLayout(0, LAYOUT))[None, :].broadcast_to([ROWS, ROWS])


@gluon.jit
def hidden(weights, row, column, first, last, LEFT: gl.constexpr, RIGHT: gl.constexpr):
    """Weights (keys by queries) with those of keys that the mask hides at zero."""
    layout: gl.constexpr = weights.type.layout
    j = column + gl.arange(0, ROWS, gl.SliceLayout(1, layout))[:, None]
    i = row + gl.arange(0, ROWS, gl.SliceLayout(0, layout))[None, :]
    if RIGHT:
        weights = gl.where(j <= i + last, weights, 0.0)
    if LEFT:  # beside the other bound, so that what a thread holds of its 16 queries is held once
        weights = gl.where(j + (last - first) >= i + last, weights, 0.0)
    return weights


@gluon.jit
def in_pairs(values, FORMAT: gl.constexpr):
    """Values rounded to 16 bits, two by one instruction: the compiler rounds one by one what is then widened again."""
    if gl.bfloat16 == FORMAT:
        rounded = gl.inline_asm_elementwise(
            "cvt.rn.bf16x2.f32 $0, $2, $1;", "=r,r,r", [values], gl.bfloat16, is_pure=True, pack=2
        )
    else:
        rounded = gl.inline_asm_elementwise(
            "cvt.rn.f16x2.f32 $0, $2, $1;", "=r,r,r", [values], gl.float16, is_pure=True, pack=2
        )
    return rounded


@gluon.jit
def as_held(sums):
    """A block of sums (64 x width) in the order in which threads hold it: four numbers of each thread, then the next four.

    Additions to memory then go by 512 bytes a warp, and nothing is exchanged between threads.
    """
    parts = sums.reshape([4, 2, 8, sums.shape[1] // 8, 4, 2])  # warp, half, row, columns by 8, pair, column
    return parts.permute([3, 0, 2, 4, 1, 5]).reshape([sums.shape[0] * sums.shape[1]])


@gluon.jit
def one_block(
    dk, dv, buffers, barriers, sums, count, number, row, column, bounds,
    SELF: gl.constexpr, STAGES: gl.constexpr, LEFT: gl.constexpr, RIGHT: gl.constexpr, RAGGED: gl.constexpr,
    S_LAYOUT: gl.constexpr, O_LAYOUT: gl.constexpr, P_LAYOUT: gl.constexpr,
):  # fmt: skip
    """What 64 queries add to dK and dV of the group's keys; their dQ too where it is the group's turn."""
    q_smem, k_smem, v_smem, do_smem, ds_smem, begins_smem = buffers
    _keys_full, rows_full, rows_empty, ds_full, ds_empty = barriers
    kv_len, first, last, whole_begin, whole_end, scale_log2 = bounds
    WIDTH: gl.constexpr = dk.shape[1]
    stage = count % STAGES
    phase = (count // STAGES) & 1
    mbarrier.wait(rows_full.index(stage), phase)
    # What is subtracted is where the sums begin: kept beside them, its registers would be spilled.
    scores = beginning(begins_smem.index(stage).slice(0, ROWS), S_LAYOUT)
    slopes = beginning(begins_smem.index(stage).slice(ROWS, ROWS), S_LAYOUT)
    q_tile = flat(q_smem, stage)
    scores = warpgroup_mma(flat(k_smem, SELF), q_tile.permute([1, 0]), scores, is_async=True)
    do_tile = flat(do_smem, stage)
    slopes = warpgroup_mma(flat(v_smem, SELF), do_tile.permute([1, 0]), slopes, is_async=True)
    scores = warpgroup_mma_wait(1, deps=[scores])
    weights = gl.exp2(scores * scale_log2)
    if LEFT or RIGHT:  # noqa: SIM102 - compiled in or not; queries past the last need no mask: see prepare_blocks
        if row < whole_begin or row >= whole_end:
            weights = hidden(weights, row, column, first, last, LEFT, RIGHT)
    if RAGGED:  # past the last key scores are zero, and what a row's sum is then divided into may be infinite
        keys = column + gl.arange(0, ROWS, gl.SliceLayout(1, S_LAYOUT))
        weights = gl.where((keys < kv_len)[:, None], weights, 0.0)
    rounded = in_pairs(weights, q_smem.dtype)
    slopes = warpgroup_mma_wait(0, deps=[slopes])
    dv = warpgroup_mma(gl.convert_layout(rounded, P_LAYOUT), do_tile, dv, is_async=True)
    slopes = (rounded.to(gl.float32) * slopes).to(q_smem.dtype)
    turn = count % 2
    mbarrier.wait(ds_empty.index(turn), ((count // 2) & 1) ^ 1)
    ds_smem.index(turn * 2 + SELF).store(slopes)
    fence_async_shared()
    mbarrier.arrive(ds_full.index(turn))
    dk = warpgroup_mma(gl.convert_layout(slopes, P_LAYOUT), q_tile, dk, is_async=True)
    dv, dk = warpgroup_mma_wait(0, deps=[dv, dk])
    mbarrier.arrive(rows_empty.index(stage))
    if turn == SELF:
        mbarrier.wait(ds_full.index(turn), (count // 2) & 1)
        dq = gl.zeros([ROWS, WIDTH], gl.float32, O_LAYOUT)
        dq = warpgroup_mma(ds_smem.index(turn * 2).permute([1, 0]), flat(k_smem, 0), dq, use_acc=False, is_async=True)
        dq = warpgroup_mma(ds_smem.index(turn * 2 + 1).permute([1, 0]), flat(k_smem, 1), dq, is_async=True)
        dq = warpgroup_mma_wait(0, deps=[dq])
        mbarrier.arrive(ds_empty.index(turn))
        mine = as_held(dq)
        places = sums + number.to(gl.int64) * (ROWS * WIDTH) + gl.arange(0, ROWS * WIDTH, mine.type.layout)
        gl.atomic_add(places, mine, sem="relaxed")
    return dk, dv


@gluon.jit
def gather(
    outputs, sums, buffers, barriers, sizes, scale,
    SELF: gl.constexpr, STAGES: gl.constexpr, LEFT: gl.constexpr, RIGHT: gl.constexpr, RAGGED: gl.constexpr,
):  # fmt: skip
    """Everything that one group of four warps does."""
    dk_out, dv_out = outputs
    keys_full, _rows_full, _rows_empty, _ds_full, _ds_empty = barriers
    q_len, kv_len, group, first, last, scale_log2 = sizes
    WIDTH: gl.constexpr = buffers[1].shape[4]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, ROWS, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, WIDTH, 16])
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=O_LAYOUT, k_width=2)
    kv_head, batch = gl.program_id(1), gl.program_id(2)
    top = gl.program_id(0) * KEYS
    column = top + SELF * ROWS
    # Which queries see a key is the mask seen from the other side.
    begin, whole_begin, whole_end, end = keys_of(top, -last, -first, q_len, KEYS, ROWS, RIGHT, LEFT)
    blocks = gl.cdiv(end - begin, ROWS)
    others = gl.cdiv(q_len, ROWS) - blocks  # of a head, which do not see the keys
    bounds = (kv_len, first, last, whole_begin, whole_end, scale_log2)
    dk = gl.zeros([ROWS, WIDTH], gl.float32, O_LAYOUT)
    dv = gl.zeros([ROWS, WIDTH], gl.float32, O_LAYOUT)
    for w in gl.static_range(2):
        mbarrier.wait(keys_full.index(w), 0)
    row = begin
    number = (batch * gl.num_programs(1) + kv_head) * group * (blocks + others) + begin // ROWS
    for count in range(group * blocks):
        dk, dv = one_block(
            dk, dv, buffers, barriers, sums, count, number, row, column, bounds,
            SELF, STAGES, LEFT, RIGHT, RAGGED, S_LAYOUT, O_LAYOUT, P_LAYOUT,
        )  # fmt: skip
        row += ROWS
        number += 1
        if row >= end:  # the next head of those that share the keys
            row = begin
            number += others
    # The group's values are read by no one else.
    v_tile = buffers[2].index(SELF)
    flat(buffers[2], SELF).store(dv.to(buffers[2].dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(dv_out, [batch, kv_head, column, 0], v_tile)
    tma.store_wait(0)
    flat(buffers[2], SELF).store((dk * scale).to(buffers[2].dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(dk_out, [batch, kv_head, column, 0], v_tile)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=("first", "last"))
def gradients_on_hopper(
    q, k, v, do, dk, dv, begins, sums,
    q_len, kv_len, group, first, last, scale, scale_log2,
    STAGES: gl.constexpr, LEFT: gl.constexpr, RIGHT: gl.constexpr, RAGGED: gl.constexpr, REGISTERS: gl.constexpr,
):  # fmt: skip
    """dK and dV of 128 keys of one head, and what these keys add to dQ's sums.

    Descriptors have blocks of ``[1, 1, 64, width]``; ``begins`` and ``sums`` are those of ``prepare_blocks``.
    ``RAGGED``: the keys fill no whole number of tiles.
    """
    q_smem = gl.allocate_shared_memory(q.dtype, [STAGES, 1, 1, ROWS, q.block_shape[3]], q.layout)
    k_smem = gl.allocate_shared_memory(k.dtype, [2, 1, 1, ROWS, k.block_shape[3]], k.layout)
    v_smem = gl.allocate_shared_memory(v.dtype, [2, 1, 1, ROWS, v.block_shape[3]], v.layout)
    do_smem = gl.allocate_shared_memory(do.dtype, [STAGES, 1, 1, ROWS, do.block_shape[3]], do.layout)
    DS_LAYOUT: gl.constexpr = gl.NVMMASharedLayout.get_default_for([ROWS, ROWS], q.dtype)
    ds_smem = gl.allocate_shared_memory(q.dtype, [4, ROWS, ROWS], DS_LAYOUT)
    keys_full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    ds_full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    ds_empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    rows_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    rows_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for w in gl.static_range(2):
        mbarrier.init(keys_full.index(w), count=1)
        mbarrier.init(ds_full.index(w), count=2)
        mbarrier.init(ds_empty.index(w), count=1)
    for s in gl.static_range(STAGES):
        mbarrier.init(rows_full.index(s), count=2)
        mbarrier.init(rows_empty.index(s), count=2)
    fence_async_shared()
    begins_smem = gl.allocate_shared_memory(gl.float32, [STAGES, 2 * ROWS], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    buffers = (q_smem, k_smem, v_smem, do_smem, ds_smem, begins_smem)
    barriers = (keys_full, rows_full, rows_empty, ds_full, ds_empty)
    sizes = (q_len, kv_len, group, first, last, scale_log2)
    outputs = (dk, dv)
    gl.warp_specialize(
        [
            (gather, (outputs, sums, buffers, barriers, sizes, scale, 0, STAGES, LEFT, RIGHT, RAGGED)),
            (gather, (outputs, sums, buffers, barriers, sizes, scale, 1, STAGES, LEFT, RIGHT, RAGGED)),
            (load_all, (q, k, v, do, begins, buffers, barriers, sizes, STAGES, LEFT, RIGHT)),
        ],
        [4, 1],
        [REGISTERS, 24],
    )
