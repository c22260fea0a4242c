"""The forward pass of attention: O = softmax(scale Q K^T) V without the scores in memory, and the logarithm of their sums.

A program holds ``BLOCK_M`` queries of one head and goes through its keys ``BLOCK_N`` at a time, keeping each row's maximum and
sum (Milakov and Gimelshein, arXiv:1805.02867; Dao, arXiv:2307.08691).  Blocks that no query sees are not visited, and only
those that some queries see in part are masked.  Exponentials are of base 2, with log2(e) in the scale.

Names in capitals are constants of the compiled kernel.  ``TAIL`` more columns of Q and K than ``WIDTH`` come from operands of
their own (MLA's 192 = 128 + 64).  ``SCALED`` multiplies by one scale a head for each of Q, K and V.
"""

import triton
import triton.language as tl

from backends.triton.attention.order import VARIED, keys_of, tile_of
from backends.triton.attention.rows import load_rows, store_rows

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803

LN_2 = tl.constexpr(0.6931471805599453)
FP8_HEADROOM = tl.constexpr(8.0)  # weights of 8 bits are 2**8 times as large: e4m3 holds 448, and fewer of them vanish


@triton.jit
def seen(i, j, first, last, kv_len, LEFT: tl.constexpr, RIGHT: tl.constexpr):
    """Whether query ``i`` sees key ``j``, for a column of queries and a row of keys or the other way round."""
    limit = tl.minimum(i + last, kv_len - 1) if RIGHT else kv_len - 1
    visible = j <= limit
    if LEFT:
        visible = visible & (j >= i + first)
    return visible


@triton.jit
def attended(
    acc,
    total,
    peak,
    q,
    q_tail,
    k_operand,
    k_tail_operand,
    v_operand,
    k_steps,
    v_steps,
    batch,
    kv_head,
    row,
    begin,
    end,
    first,
    last,
    kv_len,
    scale_log2,
    WIDTH: tl.constexpr,
    TAIL: tl.constexpr,
    V_WIDTH: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    LEFT: tl.constexpr,
    RIGHT: tl.constexpr,
    DESCRIBED: tl.constexpr,
    V_TRANSPOSED: tl.constexpr,
    MASKED: tl.constexpr,
):
    """Sums over the keys from ``begin`` to before ``end``, added to those there are."""
    for at in tl.range(begin, end, BLOCK_N):
        k = load_rows(k_operand, batch, kv_head, at, kv_len, k_steps, BLOCK_N, WIDTH, DESCRIBED, MASKED)
        scores = tl.dot(q, k.T)
        if TAIL:
            k_tail = load_rows(k_tail_operand, batch, kv_head, at, kv_len, k_steps, BLOCK_N, TAIL, DESCRIBED, MASKED)
            scores = tl.dot(q_tail, k_tail.T, scores)
        if MASKED:
            i = row + tl.arange(0, BLOCK_M)[:, None]
            j = at + tl.arange(0, BLOCK_N)[None, :]
            scores = tl.where(seen(i, j, first, last, kv_len, LEFT, RIGHT), scores, float("-inf"))
        now = tl.maximum(peak, tl.max(scores, 1))
        base = now * scale_log2
        if MASKED:  # a row that has seen nothing has no maximum
            base = tl.where(now == float("-inf"), 0.0, base)
        shrink = tl.exp2(peak * scale_log2 - base)
        if q.dtype.primitive_bitwidth == 8:
            base -= FP8_HEADROOM
        weights = tl.exp2(scores * scale_log2 - base[:, None])
        total = total * shrink + tl.sum(weights, 1)
        acc = acc * shrink[:, None]
        peak = now
        if V_TRANSPOSED:
            v = load_columns(v_operand, batch, kv_head, at, kv_len, v_steps, BLOCK_N, V_WIDTH, DESCRIBED, MASKED).T
        else:
            v = load_rows(v_operand, batch, kv_head, at, kv_len, v_steps, BLOCK_N, V_WIDTH, DESCRIBED, MASKED)
        acc = tl.dot(weights.to(v.dtype), v, acc)
    return acc, total, peak


@triton.jit
def load_columns(
    operand,
    batch,
    head,
    column,
    length,
    steps,
    COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr,
    DESCRIBED: tl.constexpr,
    EDGE: tl.constexpr,
):
    """``WIDTH`` x ``COLUMNS`` of an operand that is stored (batch, head, width, row): what fp8 products want of V."""
    if DESCRIBED:
        block = operand.load([batch, head, 0, column]).reshape(WIDTH, COLUMNS)
    else:
        start = operand + tl.cast(batch, tl.int64) * steps[0] + tl.cast(head, tl.int64) * steps[1]
        columns = column + tl.arange(0, COLUMNS)
        pointers = start + tl.arange(0, WIDTH)[:, None] * steps[2] + columns[None, :]
        block = tl.load(pointers, mask=(columns < length)[None, :], other=0.0) if EDGE else tl.load(pointers)
    return block


@triton.jit(do_not_specialize=VARIED)
def forward(
    q,
    q_tail,
    k,
    k_tail,
    v,
    o,
    lse_ptr,
    q_scale_ptr,
    k_scale_ptr,
    v_scale_ptr,
    q_batch,
    q_head,
    q_row,
    k_batch,
    k_head,
    k_row,
    v_batch,
    v_head,
    v_row,
    o_batch,
    o_head,
    o_row,
    q_len,
    kv_len,
    heads,
    all_heads,
    group,
    chunk,
    first,
    last,
    scale_log2,
    WIDTH: tl.constexpr,
    TAIL: tl.constexpr,
    V_WIDTH: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    LEFT: tl.constexpr,
    RIGHT: tl.constexpr,
    RAGGED: tl.constexpr,
    DESCRIBED: tl.constexpr,
    V_TRANSPOSED: tl.constexpr,
    SCALED: tl.constexpr,
):
    """One tile of queries.

    ``heads`` of one sequence and ``all_heads`` of all, ``group`` query heads to a head of keys; the mask is that of ``order``.
    ``lse_ptr`` is (all_heads, q_len) in fp32, minus infinity where a query sees no key; its output is then zero.
    ``RAGGED``: ``BLOCK_N`` does not divide ``kv_len``.
    """
    tiles = tl.cdiv(q_len, BLOCK_M)
    tile, place = tile_of(tl.program_id(0), tiles, all_heads, chunk, RIGHT)
    batch = place // heads
    head = place % heads
    kv_head = head // group
    row = tile * BLOCK_M
    q_steps = (q_batch, q_head, q_row)
    k_steps = (k_batch, k_head, k_row)
    v_steps = (v_batch, v_head, v_row)
    queries = load_rows(q, batch, head, row, q_len, q_steps, BLOCK_M, WIDTH, DESCRIBED, True)
    tails = queries
    if TAIL:
        tails = load_rows(q_tail, batch, head, row, q_len, q_steps, BLOCK_M, TAIL, DESCRIBED, True)
    factor = 1.0
    if SCALED:
        kv_place = batch * (heads // group) + kv_head
        scale_log2 *= tl.load(q_scale_ptr + place) * tl.load(k_scale_ptr + kv_place)
        factor = tl.load(v_scale_ptr + kv_place)
    acc = tl.zeros((BLOCK_M, V_WIDTH), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    peak = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    begin, whole_begin, whole_end, end = keys_of(row, first, last, kv_len, BLOCK_M, BLOCK_N, LEFT, RIGHT)
    if LEFT:
        acc, total, peak = attended(
            acc,
            total,
            peak,
            queries,
            tails,
            k,
            k_tail,
            v,
            k_steps,
            v_steps,
            batch,
            kv_head,
            row,
            begin,
            whole_begin,
            first,
            last,
            kv_len,
            scale_log2,
            WIDTH,
            TAIL,
            V_WIDTH,
            BLOCK_M,
            BLOCK_N,
            LEFT,
            RIGHT,
            DESCRIBED,
            V_TRANSPOSED,
            True,
        )
    acc, total, peak = attended(
        acc,
        total,
        peak,
        queries,
        tails,
        k,
        k_tail,
        v,
        k_steps,
        v_steps,
        batch,
        kv_head,
        row,
        whole_begin,
        whole_end,
        first,
        last,
        kv_len,
        scale_log2,
        WIDTH,
        TAIL,
        V_WIDTH,
        BLOCK_M,
        BLOCK_N,
        LEFT,
        RIGHT,
        DESCRIBED,
        V_TRANSPOSED,
        False,
    )
    if LEFT or RIGHT or RAGGED:
        acc, total, peak = attended(
            acc,
            total,
            peak,
            queries,
            tails,
            k,
            k_tail,
            v,
            k_steps,
            v_steps,
            batch,
            kv_head,
            row,
            whole_end,
            end,
            first,
            last,
            kv_len,
            scale_log2,
            WIDTH,
            TAIL,
            V_WIDTH,
            BLOCK_M,
            BLOCK_N,
            LEFT,
            RIGHT,
            DESCRIBED,
            V_TRANSPOSED,
            True,
        )
    whole = tl.where(total > 0.0, total, 1.0)
    natural = peak * (scale_log2 * LN_2) + tl.log(whole)
    if queries.dtype.primitive_bitwidth == 8:
        natural -= FP8_HEADROOM * LN_2
    rows = row + tl.arange(0, BLOCK_M)
    tl.store(lse_ptr + tl.cast(place, tl.int64) * q_len + rows, natural, mask=rows < q_len)
    acc = acc * (factor / whole)[:, None]
    store_rows(o, batch, head, row, q_len, (o_batch, o_head, o_row), acc, DESCRIBED)
