"""Attention's forward pass for Hopper in Gluon: one warp loads, two groups of four warps take turns at the tensor cores.

A program takes 128 queries of one head, 64 to each group, and goes through blocks of keys from the last to the first.  A group
issues the scores of its next block before it waits for the values of the one before, and lets the other group issue while it
computes exponentials.  Copies are TMA's, and every buffer has a barrier for full and one for empty.

Names as in ``forward``; the mask is that of ``order``.
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

from backends.triton.attention.order import VARIED, keys_of, number_of, share_of, tile_of

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803, N806

ROWS = gl.constexpr(64)  # queries of one group: what a wgmma multiplies
DTYPES = {"bfloat16": gl.bfloat16, "float16": gl.float16}


@gluon.jit
def load_all(
    q,
    k,
    v,
    q_smem,
    k_smem,
    v_smem,
    q_full,
    q_empty,
    k_full,
    k_empty,
    v_full,
    v_empty,
    sizes,
    BLOCK: gl.constexpr,
    STAGES: gl.constexpr,
    LEFT: gl.constexpr,
    RIGHT: gl.constexpr,
):
    """What the loading warp does: for every tile its queries, then keys and values from the last block to the first."""
    q_len, kv_len, heads, all_heads, group, chunk, first, last, _scale_log2 = sizes
    tiles = gl.cdiv(q_len, 2 * ROWS)
    count = 0
    for turn in range(share_of(gl.program_id(0), gl.num_programs(0), tiles * all_heads)):
        number = number_of(turn, gl.program_id(0), gl.num_programs(0))
        tile, place = tile_of(number, tiles, all_heads, chunk, RIGHT)
        batch = place // heads
        head = place % heads
        row = tile * 2 * ROWS
        begin, _whole_begin, _whole_end, end = keys_of(row, first, last, kv_len, 2 * ROWS, BLOCK, LEFT, RIGHT)
        blocks = gl.cdiv(end - begin, BLOCK)
        for w in gl.static_range(2):
            mbarrier.wait(q_empty.index(w), (turn & 1) ^ 1)
            mbarrier.expect(q_full.index(w), q.block_type.nbytes)
            tma.async_copy_global_to_shared(q, [batch, head, row + w * ROWS, 0], q_full.index(w), q_smem.index(w))
        for step in range(blocks):
            stage = count % STAGES
            phase = ((count // STAGES) & 1) ^ 1
            at = begin + (blocks - 1 - step) * BLOCK
            mbarrier.wait(k_empty.index(stage), phase)
            mbarrier.expect(k_full.index(stage), k.block_type.nbytes)
            tma.async_copy_global_to_shared(k, [batch, head // group, at, 0], k_full.index(stage), k_smem.index(stage))
            mbarrier.wait(v_empty.index(stage), phase)
            mbarrier.expect(v_full.index(stage), v.block_type.nbytes)
            tma.async_copy_global_to_shared(v, [batch, head // group, at, 0], v_full.index(stage), v_smem.index(stage))
            count += 1


@gluon.jit
def flat(buffers, index):
    """One of the buffers as a matrix."""
    return buffers.index(index).reshape([buffers.shape[3], buffers.shape[4]])


@gluon.jit
def hidden(scores, row, at, first, last, kv_len, BLOCK: gl.constexpr, LEFT: gl.constexpr, RIGHT: gl.constexpr):
    """Scores with those of unseen keys at minus infinity."""
    layout: gl.constexpr = scores.type.layout
    i = row + gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    j = at + gl.arange(0, BLOCK, gl.SliceLayout(0, layout))
    limit = gl.full([ROWS], kv_len - 1, gl.int32, gl.SliceLayout(1, layout))
    if RIGHT:
        limit = gl.minimum(i + last, kv_len - 1)
    seen = j[None, :] <= limit[:, None]
    if LEFT:
        seen = seen & (j[None, :] >= (i + first)[:, None])
    return gl.where(seen, scores, float("-inf"))


@gluon.jit
def softened(scores, peak, scale_log2, GUARDED: gl.constexpr):
    """Exponentials of scores against the new maximum, that maximum, and what earlier sums shrink by."""
    now = gl.maximum(peak, gl.max(scores, 1))
    base = now * scale_log2
    if GUARDED:  # a row that has seen nothing has no maximum
        base = gl.where(now == float("-inf"), 0.0, base)
    shrink = gl.exp2(peak * scale_log2 - base)
    weights = gl.exp2(scores * scale_log2 - base[:, None])
    return weights, now, shrink


@gluon.jit
def kept_before_a_wait(sums):
    """The same sums, held in front of the wait for a product that follows.

    The assembler moves such a wait above any arithmetic, and then nothing of a group overlaps; above a store to memory it does
    not.  This one stores where a sum of exponentials is negative, which none is.
    """
    return gl.inline_asm_elementwise(
        "{ .reg .pred p; .reg .u32 a; mov.u32 a, 0; setp.lt.f32 p, $1, 0f00000000; @p st.shared.f32 [a], $1; mov.b32 $0, $1; }",
        "=f,f",
        [sums],
        gl.float32,
        is_pure=False,
        pack=1,
    )


@gluon.jit
def step(
    q_tile,
    k_smem,
    v_smem,
    k_full,
    k_empty,
    v_full,
    v_empty,
    turns,
    acc,
    weights,
    total,
    peak,
    count,
    row,
    at,
    bounds,
    SELF: gl.constexpr,
    BLOCK: gl.constexpr,
    STAGES: gl.constexpr,
    LEFT: gl.constexpr,
    RIGHT: gl.constexpr,
    MASKED: gl.constexpr,
    SKEWED: gl.constexpr,
    ORDERED: gl.constexpr,
    OVERLAPPED: gl.constexpr,
    S_LAYOUT: gl.constexpr,
    P_LAYOUT: gl.constexpr,
):
    """Scores of one block, and the values of the block before."""
    first, last, kv_len, scale_log2 = bounds
    stage = count % STAGES
    phase = (count // STAGES) & 1
    before = (count - 1) % STAGES
    before_phase = ((count - 1) // STAGES) & 1
    mbarrier.wait(k_full.index(stage), phase)
    if ORDERED:
        mbarrier.wait(turns.index(SELF), count & 1)
    none = gl.zeros([ROWS, BLOCK], gl.float32, S_LAYOUT)
    scores = warpgroup_mma(q_tile, flat(k_smem, stage).permute([1, 0]), none, use_acc=False, is_async=True)
    mbarrier.wait(v_full.index(before), before_phase)
    acc = warpgroup_mma(weights, flat(v_smem, before), acc, is_async=True)
    if ORDERED:
        mbarrier.arrive(turns.index(1 - SELF))
    scores = warpgroup_mma_wait(1, deps=[scores])
    mbarrier.arrive(k_empty.index(stage))
    if MASKED:
        scores = hidden(scores, row, at, first, last, kv_len, BLOCK, LEFT, RIGHT)
    exponentials, peak, shrink = softened(scores, peak, scale_log2, SKEWED)
    total = total * shrink + gl.sum(exponentials, 1)
    if OVERLAPPED:
        total = kept_before_a_wait(total)
    acc = warpgroup_mma_wait(0, deps=[acc])
    mbarrier.arrive(v_empty.index(before))
    acc = acc * gl.convert_layout(shrink, gl.SliceLayout(1, acc.type.layout))[:, None]
    weights = gl.convert_layout(exponentials.to(v_smem.dtype), P_LAYOUT)
    return acc, weights, total, peak


@gluon.jit
def attend(
    o,
    lse,
    q_smem,
    k_smem,
    v_smem,
    o_smem,
    q_full,
    q_empty,
    k_full,
    k_empty,
    v_full,
    v_empty,
    turns,
    sizes,
    SELF: gl.constexpr,
    BLOCK: gl.constexpr,
    STAGES: gl.constexpr,
    LEFT: gl.constexpr,
    RIGHT: gl.constexpr,
    SKEWED: gl.constexpr,
    RAGGED: gl.constexpr,
    ORDERED: gl.constexpr,
    OVERLAPPED: gl.constexpr,
    OWN_OUTPUT: gl.constexpr,
):
    """Everything that one group of four warps does."""
    q_len, kv_len, heads, all_heads, _group, chunk, first, last, scale_log2 = sizes
    WIDTH: gl.constexpr = v_smem.shape[4]
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BLOCK, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, WIDTH, 16])
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=O_LAYOUT, k_width=2)
    ROW_LAYOUT: gl.constexpr = gl.SliceLayout(1, S_LAYOUT)
    bounds = (first, last, kv_len, scale_log2)
    tiles = gl.cdiv(q_len, 2 * ROWS)
    count = 0
    for turn in range(share_of(gl.program_id(0), gl.num_programs(0), tiles * all_heads)):
        number = number_of(turn, gl.program_id(0), gl.num_programs(0))
        tile, place = tile_of(number, tiles, all_heads, chunk, RIGHT)
        batch = place // heads
        head = place % heads
        top = tile * 2 * ROWS
        row = top + SELF * ROWS
        begin, whole_begin, whole_end, end = keys_of(top, first, last, kv_len, 2 * ROWS, BLOCK, LEFT, RIGHT)
        q_tile = flat(q_smem, SELF)
        mbarrier.wait(q_full.index(SELF), turn & 1)
        acc = gl.zeros([ROWS, WIDTH], gl.float32, O_LAYOUT)
        peak = gl.full([ROWS], float("-inf"), gl.float32, ROW_LAYOUT)
        total = gl.zeros([ROWS], gl.float32, ROW_LAYOUT)
        blocks = gl.cdiv(end - begin, BLOCK)
        if blocks > 0:
            at = begin + (blocks - 1) * BLOCK
            stage = count % STAGES
            mbarrier.wait(k_full.index(stage), (count // STAGES) & 1)
            if ORDERED:
                mbarrier.wait(turns.index(SELF), count & 1)
            none = gl.zeros([ROWS, BLOCK], gl.float32, S_LAYOUT)
            scores = warpgroup_mma(q_tile, flat(k_smem, stage).permute([1, 0]), none, use_acc=False, is_async=True)
            if ORDERED:
                mbarrier.arrive(turns.index(1 - SELF))
            scores = warpgroup_mma_wait(0, deps=[scores])
            mbarrier.arrive(k_empty.index(stage))
            if LEFT or RIGHT or RAGGED:
                scores = hidden(scores, row, at, first, last, kv_len, BLOCK, LEFT, RIGHT)
            exponentials, peak, _shrink = softened(scores, peak, scale_log2, SKEWED)
            total = gl.sum(exponentials, 1)
            weights = gl.convert_layout(exponentials.to(v_smem.dtype), P_LAYOUT)
            count += 1
            done = 1
            if SKEWED:
                masked = gl.cdiv(end - whole_end, BLOCK)
                for back in range(1, masked):
                    at = begin + (blocks - 1 - back) * BLOCK
                    acc, weights, total, peak = step(
                        q_tile,
                        k_smem,
                        v_smem,
                        k_full,
                        k_empty,
                        v_full,
                        v_empty,
                        turns,
                        acc,
                        weights,
                        total,
                        peak,
                        count,
                        row,
                        at,
                        bounds,
                        SELF,
                        BLOCK,
                        STAGES,
                        LEFT,
                        RIGHT,
                        True,
                        SKEWED,
                        ORDERED,
                        OVERLAPPED,
                        S_LAYOUT,
                        P_LAYOUT,
                    )
                    count += 1
                done = max(masked, 1)
            plain_end = blocks - (whole_begin - begin) // BLOCK
            for _ in range(done, plain_end):
                acc, weights, total, peak = step(
                    q_tile,
                    k_smem,
                    v_smem,
                    k_full,
                    k_empty,
                    v_full,
                    v_empty,
                    turns,
                    acc,
                    weights,
                    total,
                    peak,
                    count,
                    row,
                    0,
                    bounds,
                    SELF,
                    BLOCK,
                    STAGES,
                    LEFT,
                    RIGHT,
                    False,
                    SKEWED,
                    ORDERED,
                    OVERLAPPED,
                    S_LAYOUT,
                    P_LAYOUT,
                )
                count += 1
            if LEFT:
                for back in range(max(plain_end, 1), blocks):
                    at = begin + (blocks - 1 - back) * BLOCK
                    acc, weights, total, peak = step(
                        q_tile,
                        k_smem,
                        v_smem,
                        k_full,
                        k_empty,
                        v_full,
                        v_empty,
                        turns,
                        acc,
                        weights,
                        total,
                        peak,
                        count,
                        row,
                        at,
                        bounds,
                        SELF,
                        BLOCK,
                        STAGES,
                        LEFT,
                        RIGHT,
                        True,
                        SKEWED,
                        ORDERED,
                        OVERLAPPED,
                        S_LAYOUT,
                        P_LAYOUT,
                    )
                    count += 1
            if OWN_OUTPUT:
                mbarrier.arrive(q_empty.index(SELF))
            before = (count - 1) % STAGES
            mbarrier.wait(v_full.index(before), ((count - 1) // STAGES) & 1)
            acc = warpgroup_mma(weights, flat(v_smem, before), acc, is_async=True)
            acc = warpgroup_mma_wait(0, deps=[acc])
            mbarrier.arrive(v_empty.index(before))
        else:
            if OWN_OUTPUT:
                mbarrier.arrive(q_empty.index(SELF))
        whole = gl.where(total > 0.0, total, 1.0)
        lse_rows = row + gl.arange(0, ROWS, ROW_LAYOUT)
        natural = peak * (scale_log2 * 0.6931471805599453) + gl.log(whole)
        gl.store(lse + place.to(gl.int64) * q_len + lse_rows, natural, mask=lse_rows < q_len)
        acc = acc * gl.convert_layout(1.0 / whole, gl.SliceLayout(1, O_LAYOUT))[:, None]
        o_tile = o_smem.index(SELF)
        if OWN_OUTPUT:
            tma.store_wait(0)
        flat(o_smem, SELF).store(acc.to(o_smem.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(o, [batch, head, row, 0], o_tile)
        if not OWN_OUTPUT:
            tma.store_wait(0)
            mbarrier.arrive(q_empty.index(SELF))
    tma.store_wait(0)


@gluon.jit(do_not_specialize=VARIED)
def forward_on_hopper(
    q,
    k,
    v,
    o,
    lse,
    q_len,
    kv_len,
    heads,
    all_heads,
    group,
    chunk,
    first,
    last,
    scale_log2,
    BLOCK: gl.constexpr,
    STAGES: gl.constexpr,
    LEFT: gl.constexpr,
    RIGHT: gl.constexpr,
    SKEWED: gl.constexpr,
    RAGGED: gl.constexpr,
    ORDERED: gl.constexpr,
    OVERLAPPED: gl.constexpr,
    OWN_OUTPUT: gl.constexpr,
    REGISTERS: gl.constexpr,
):
    """Descriptors have blocks of ``[1, 1, ROWS, width]`` for Q and O, ``[1, 1, BLOCK, width]`` for K and V.

    ``SKEWED``: a tile may have more than one block with a mask, and a query none of whose keys is in the first that it meets.
    ``RAGGED``: the keys fill no whole number of blocks.  ``ORDERED``: the groups take turns.  ``OVERLAPPED``: exponentials are
    computed while the group's own values are multiplied.  ``OWN_OUTPUT``: the output has buffers of its own, so that the next
    queries can be loaded while it is stored.
    """
    q_smem = gl.allocate_shared_memory(q.dtype, [2, 1, 1, ROWS, q.block_shape[3]], q.layout)
    k_smem = gl.allocate_shared_memory(k.dtype, [STAGES, 1, 1, BLOCK, k.block_shape[3]], k.layout)
    v_smem = gl.allocate_shared_memory(v.dtype, [STAGES, 1, 1, BLOCK, v.block_shape[3]], v.layout)
    o_smem = gl.allocate_shared_memory(o.dtype, [2, 1, 1, ROWS, o.block_shape[3]], o.layout) if OWN_OUTPUT else q_smem
    q_full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    q_empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    turns = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for w in gl.static_range(2):
        mbarrier.init(q_full.index(w), count=1)
        mbarrier.init(q_empty.index(w), count=1)
        mbarrier.init(turns.index(w), count=1)
    for s in gl.static_range(STAGES):
        mbarrier.init(k_full.index(s), count=1)
        mbarrier.init(k_empty.index(s), count=2)
        mbarrier.init(v_full.index(s), count=1)
        mbarrier.init(v_empty.index(s), count=2)
    fence_async_shared()
    if ORDERED:
        mbarrier.arrive(turns.index(0))
    sizes = (q_len, kv_len, heads, all_heads, group, chunk, first, last, scale_log2)
    gl.warp_specialize(
        [
            (
                attend,
                (
                    o,
                    lse,
                    q_smem,
                    k_smem,
                    v_smem,
                    o_smem,
                    q_full,
                    q_empty,
                    k_full,
                    k_empty,
                    v_full,
                    v_empty,
                    turns,
                    sizes,
                    0,
                    BLOCK,
                    STAGES,
                    LEFT,
                    RIGHT,
                    SKEWED,
                    RAGGED,
                    ORDERED,
                    OVERLAPPED,
                    OWN_OUTPUT,
                ),
            ),
            (
                attend,
                (
                    o,
                    lse,
                    q_smem,
                    k_smem,
                    v_smem,
                    o_smem,
                    q_full,
                    q_empty,
                    k_full,
                    k_empty,
                    v_full,
                    v_empty,
                    turns,
                    sizes,
                    1,
                    BLOCK,
                    STAGES,
                    LEFT,
                    RIGHT,
                    SKEWED,
                    RAGGED,
                    ORDERED,
                    OVERLAPPED,
                    OWN_OUTPUT,
                ),
            ),
            (
                load_all,
                (
                    q,
                    k,
                    v,
                    q_smem,
                    k_smem,
                    v_smem,
                    q_full,
                    q_empty,
                    k_full,
                    k_empty,
                    v_full,
                    v_empty,
                    sizes,
                    BLOCK,
                    STAGES,
                    LEFT,
                    RIGHT,
                ),
            ),
        ],
        [4, 1],
        [REGISTERS, 24],
    )


def hopper_described(tensor: Any, rows: int) -> TensorDescriptor:
    """A descriptor of blocks of one head, all columns wide."""
    shape = [1, 1, rows, tensor.shape[3]]
    layout = gl.NVMMASharedLayout.get_default_for(shape, DTYPES[str(tensor.dtype).removeprefix("torch.")])
    return TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), shape, layout)
