"""The gradients of attention, with the scores computed again from Q, K and the forward pass's logarithm of sums.

Two kernels and a preparation: one holds a block of keys and goes through the queries that see it, over all query heads that
share it; the other holds a block of queries and goes through its keys.  Scores are computed in both, so seven products stand
for five, and nothing is added to memory by two programs: equal inputs give equal bits.

With P = exp(scale Q K^T - lse): dV = P^T dO, dS = P * (dO V^T - delta) with delta = rowsum(dO * O), dK = scale dS^T Q and
dQ = scale dS K.  Names and the mask are those of ``forward`` and ``order``.
"""

import triton
import triton.language as tl

from backends.triton.attention.forward import seen
from backends.triton.attention.order import VARIED, keys_of, tile_of
from backends.triton.attention.rows import load_rows, pointers_to, store_rows

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def row_products(
    o, do, delta_ptr, o_batch, o_head, o_row, do_batch, do_head, do_row, q_len, heads, WIDTH: tl.constexpr, ROWS: tl.constexpr
):
    """delta (batch x heads, q_len) in fp32: of each row of O and dO the sum of products."""
    row = tl.program_id(0) * ROWS
    place = tl.program_id(1)
    batch = place // heads
    head = place % heads
    inside = row + tl.arange(0, ROWS) < q_len
    out = tl.load(pointers_to(o, batch, head, row, (o_batch, o_head, o_row), ROWS, WIDTH), mask=inside[:, None], other=0.0)
    above = tl.load(
        pointers_to(do, batch, head, row, (do_batch, do_head, do_row), ROWS, WIDTH), mask=inside[:, None], other=0.0
    )
    delta = tl.sum(out.to(tl.float32) * above.to(tl.float32), 1)
    tl.store(delta_ptr + tl.cast(place, tl.int64) * q_len + row + tl.arange(0, ROWS), delta, mask=inside)


@triton.jit
def between(i, j, first, last, LEFT: tl.constexpr, RIGHT: tl.constexpr):
    """Whether the mask lets queries ``i`` see keys ``j``, whichever keys there are."""
    limit = i + last
    visible = j <= limit if RIGHT else j >= i + first
    if LEFT and RIGHT:  # of the many queries of a thread one number each, of its few keys two
        visible = visible & (j + (last - first) >= limit)
    return visible


@triton.jit
def over_queries(
    dk,
    dk_tail,
    dv,
    k,
    k_tail,
    v,
    q_operand,
    q_tail_operand,
    do_operand,
    q_steps,
    do_steps,
    lse_ptr,
    delta_ptr,
    batch,
    head,
    column,
    begin,
    end,
    first,
    last,
    q_len,
    scale_log2,
    WIDTH: tl.constexpr,
    TAIL: tl.constexpr,
    V_WIDTH: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    LEFT: tl.constexpr,
    RIGHT: tl.constexpr,
    DESCRIBED: tl.constexpr,
    MASKED: tl.constexpr,
    EDGE: tl.constexpr,
):
    """Adds what the queries from ``begin`` to before ``end`` of one head give; scores stand keys by queries.

    ``MASKED``: the mask may hide some of them from some of the keys.  ``EDGE``: a block may pass the last query.
    """
    for row in tl.range(begin, end, BLOCK_M):
        q = load_rows(q_operand, batch, head, row, q_len, q_steps, BLOCK_M, WIDTH, DESCRIBED, EDGE)
        scores = tl.dot(k, q.T)
        if TAIL:
            q_tail = load_rows(q_tail_operand, batch, head, row, q_len, q_steps, BLOCK_M, TAIL, DESCRIBED, EDGE)
            scores = tl.dot(k_tail, q_tail.T, scores)
        rows = row + tl.arange(0, BLOCK_M)
        if EDGE:
            lse = tl.load(lse_ptr + rows, mask=rows < q_len, other=float("inf"))
            delta = tl.load(delta_ptr + rows, mask=rows < q_len, other=0.0)
        else:
            lse = tl.load(lse_ptr + rows)
            delta = tl.load(delta_ptr + rows)
        weights = tl.exp2(scores * scale_log2 - (lse * LOG2_E)[None, :])
        if MASKED and (LEFT or RIGHT):  # what keys past the last would give is not stored
            j = column + tl.arange(0, BLOCK_N)[:, None]
            weights = tl.where(between(rows[None, :], j, first, last, LEFT, RIGHT), weights, 0.0)
        do = load_rows(do_operand, batch, head, row, q_len, do_steps, BLOCK_M, V_WIDTH, DESCRIBED, EDGE)
        dv = tl.dot(weights.to(do.dtype), do, dv)
        # What is subtracted is where the sums begin: kept beside them, its registers would be spilled.
        slopes = tl.dot(v, do.T, tl.broadcast_to(-delta[None, :], (BLOCK_N, BLOCK_M)))
        slopes = (weights * slopes).to(q.dtype)
        dk = tl.dot(slopes, q, dk)
        if TAIL:
            dk_tail = tl.dot(slopes, q_tail, dk_tail)
    return dk, dk_tail, dv


@triton.jit(do_not_specialize=VARIED)
def key_gradients(
    q,
    q_tail,
    k,
    k_tail,
    v,
    do,
    dk,
    dk_tail,
    dv,
    lse_ptr,
    delta_ptr,
    q_batch,
    q_head,
    q_row,
    k_batch,
    k_head,
    k_row,
    v_batch,
    v_head,
    v_row,
    do_batch,
    do_head,
    do_row,
    dk_batch,
    dk_head,
    dk_row,
    dv_batch,
    dv_head,
    dv_row,
    q_len,
    kv_len,
    kv_heads,
    all_kv_heads,
    group,
    chunk,
    first,
    last,
    scale,
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
):
    """dK and dV of ``BLOCK_N`` keys of one head; ``RAGGED``: blocks do not fill the queries, or the keys."""
    tile, place = tile_of(tl.program_id(0), tl.cdiv(kv_len, BLOCK_N), all_kv_heads, chunk, False)
    batch = place // kv_heads
    kv_head = place % kv_heads
    column = tile * BLOCK_N
    k_steps = (k_batch, k_head, k_row)
    q_steps = (q_batch, q_head, q_row)
    do_steps = (do_batch, do_head, do_row)
    keys = load_rows(k, batch, kv_head, column, kv_len, k_steps, BLOCK_N, WIDTH, DESCRIBED, True)
    values = load_rows(v, batch, kv_head, column, kv_len, (v_batch, v_head, v_row), BLOCK_N, V_WIDTH, DESCRIBED, True)
    key_sums = tl.zeros((BLOCK_N, WIDTH), tl.float32)
    value_sums = tl.zeros((BLOCK_N, V_WIDTH), tl.float32)
    tails = keys
    tail_sums = key_sums
    if TAIL:
        tails = load_rows(k_tail, batch, kv_head, column, kv_len, k_steps, BLOCK_N, TAIL, DESCRIBED, True)
        tail_sums = tl.zeros((BLOCK_N, TAIL), tl.float32)
    # Which queries see a key is the mask seen from the other side.
    begin, whole_begin, whole_end, end = keys_of(column, -last, -first, q_len, BLOCK_N, BLOCK_M, RIGHT, LEFT)
    for member in range(group):
        head = kv_head * group + member
        offset = (tl.cast(place, tl.int64) * group + member) * q_len
        if RIGHT:
            key_sums, tail_sums, value_sums = over_queries(
                key_sums,
                tail_sums,
                value_sums,
                keys,
                tails,
                values,
                q,
                q_tail,
                do,
                q_steps,
                do_steps,
                lse_ptr + offset,
                delta_ptr + offset,
                batch,
                head,
                column,
                begin,
                whole_begin,
                first,
                last,
                q_len,
                scale_log2,
                WIDTH,
                TAIL,
                V_WIDTH,
                BLOCK_M,
                BLOCK_N,
                LEFT,
                RIGHT,
                DESCRIBED,
                True,
                RAGGED,
            )
        key_sums, tail_sums, value_sums = over_queries(
            key_sums,
            tail_sums,
            value_sums,
            keys,
            tails,
            values,
            q,
            q_tail,
            do,
            q_steps,
            do_steps,
            lse_ptr + offset,
            delta_ptr + offset,
            batch,
            head,
            column,
            whole_begin,
            whole_end,
            first,
            last,
            q_len,
            scale_log2,
            WIDTH,
            TAIL,
            V_WIDTH,
            BLOCK_M,
            BLOCK_N,
            LEFT,
            RIGHT,
            DESCRIBED,
            False,
            False,
        )
        if LEFT or RAGGED:
            key_sums, tail_sums, value_sums = over_queries(
                key_sums,
                tail_sums,
                value_sums,
                keys,
                tails,
                values,
                q,
                q_tail,
                do,
                q_steps,
                do_steps,
                lse_ptr + offset,
                delta_ptr + offset,
                batch,
                head,
                column,
                whole_end,
                end,
                first,
                last,
                q_len,
                scale_log2,
                WIDTH,
                TAIL,
                V_WIDTH,
                BLOCK_M,
                BLOCK_N,
                LEFT,
                RIGHT,
                DESCRIBED,
                True,
                RAGGED,
            )
    dk_steps = (dk_batch, dk_head, dk_row)
    store_rows(dv, batch, kv_head, column, kv_len, (dv_batch, dv_head, dv_row), value_sums, DESCRIBED)
    store_rows(dk, batch, kv_head, column, kv_len, dk_steps, key_sums * scale, DESCRIBED)
    if TAIL:
        store_rows(dk_tail, batch, kv_head, column, kv_len, dk_steps, tail_sums * scale, DESCRIBED)


@triton.jit
def over_keys(
    dq,
    dq_tail,
    q,
    q_tail,
    do,
    lse,
    delta,
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
    MASKED: tl.constexpr,
):
    """Adds what the keys from ``begin`` to before ``end`` give; ``lse`` is of base 2."""
    for at in tl.range(begin, end, BLOCK_N):
        k = load_rows(k_operand, batch, kv_head, at, kv_len, k_steps, BLOCK_N, WIDTH, DESCRIBED, MASKED)
        v = load_rows(v_operand, batch, kv_head, at, kv_len, v_steps, BLOCK_N, V_WIDTH, DESCRIBED, MASKED)
        scores = tl.dot(q, k.T)
        if TAIL:
            k_tail = load_rows(k_tail_operand, batch, kv_head, at, kv_len, k_steps, BLOCK_N, TAIL, DESCRIBED, MASKED)
            scores = tl.dot(q_tail, k_tail.T, scores)
        slopes = tl.dot(do, v.T)
        weights = tl.exp2(scores * scale_log2 - lse[:, None])
        if MASKED:
            i = row + tl.arange(0, BLOCK_M)[:, None]
            j = at + tl.arange(0, BLOCK_N)[None, :]
            weights = tl.where(seen(i, j, first, last, kv_len, LEFT, RIGHT), weights, 0.0)
        slopes = (weights * (slopes - delta[:, None])).to(k.dtype)
        dq = tl.dot(slopes, k, dq)
        if TAIL:
            dq_tail = tl.dot(slopes, k_tail, dq_tail)
    return dq, dq_tail


@triton.jit(do_not_specialize=VARIED)
def query_gradients(
    q,
    q_tail,
    k,
    k_tail,
    v,
    do,
    dq,
    dq_tail,
    lse_ptr,
    delta_ptr,
    q_batch,
    q_head,
    q_row,
    k_batch,
    k_head,
    k_row,
    v_batch,
    v_head,
    v_row,
    do_batch,
    do_head,
    do_row,
    dq_batch,
    dq_head,
    dq_row,
    q_len,
    kv_len,
    heads,
    all_heads,
    group,
    chunk,
    first,
    last,
    scale,
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
):
    """dQ of ``BLOCK_M`` queries of one head; ``RAGGED``: ``BLOCK_N`` does not divide ``kv_len``."""
    tile, place = tile_of(tl.program_id(0), tl.cdiv(q_len, BLOCK_M), all_heads, chunk, RIGHT)
    batch = place // heads
    head = place % heads
    kv_head = head // group
    row = tile * BLOCK_M
    q_steps = (q_batch, q_head, q_row)
    k_steps = (k_batch, k_head, k_row)
    v_steps = (v_batch, v_head, v_row)
    queries = load_rows(q, batch, head, row, q_len, q_steps, BLOCK_M, WIDTH, DESCRIBED, True)
    above = load_rows(do, batch, head, row, q_len, (do_batch, do_head, do_row), BLOCK_M, V_WIDTH, DESCRIBED, True)
    rows = row + tl.arange(0, BLOCK_M)
    offset = tl.cast(place, tl.int64) * q_len
    lse = tl.load(lse_ptr + offset + rows, mask=rows < q_len, other=float("inf")) * LOG2_E
    delta = tl.load(delta_ptr + offset + rows, mask=rows < q_len, other=0.0)
    sums = tl.zeros((BLOCK_M, WIDTH), tl.float32)
    tails = queries
    tail_sums = sums
    if TAIL:
        tails = load_rows(q_tail, batch, head, row, q_len, q_steps, BLOCK_M, TAIL, DESCRIBED, True)
        tail_sums = tl.zeros((BLOCK_M, TAIL), tl.float32)
    begin, whole_begin, whole_end, end = keys_of(row, first, last, kv_len, BLOCK_M, BLOCK_N, LEFT, RIGHT)
    if LEFT:
        sums, tail_sums = over_keys(
            sums,
            tail_sums,
            queries,
            tails,
            above,
            lse,
            delta,
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
            True,
        )
    sums, tail_sums = over_keys(
        sums,
        tail_sums,
        queries,
        tails,
        above,
        lse,
        delta,
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
        False,
    )
    if LEFT or RIGHT or RAGGED:
        sums, tail_sums = over_keys(
            sums,
            tail_sums,
            queries,
            tails,
            above,
            lse,
            delta,
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
            True,
        )
    dq_steps = (dq_batch, dq_head, dq_row)
    store_rows(dq, batch, head, row, q_len, dq_steps, sums * scale, DESCRIBED)
    if TAIL:
        store_rows(dq_tail, batch, head, row, q_len, dq_steps, tail_sums * scale, DESCRIBED)
