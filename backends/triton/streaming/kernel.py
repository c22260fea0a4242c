"""Y = X W^T with weights W (n x k) that are streamed: read once, for few rows of X (m x k), with what a decoder puts around it.

Tiles of W's rows are shared by ``SPLIT`` programs, each of which sums over a part of K; the last of them to arrive adds the
parts up, always in the same order, so that equal inputs give equal bits.  Sums are W X^T: a column for each row of X.

NORMED    X is divided by the root mean square of its rows and multiplied by a norm's weights.  The division commutes with the
          product: squares are summed up on the way, and the sums divided in the end, so that X is read once.
END       see ``ends``; ``swiglu`` and ``rotated`` need pairs of W's rows, which lie ``apart``: the first half of a tile's rows
          is that of the pairs' first rows.
DEPENDENT see ``dependent``: the first ``NEAR`` blocks of K of the weights, which no launch writes, are brought near meanwhile.
"""

import triton
import triton.language as tl
from triton.language.extra import cuda

from backends.triton.streaming.ends import ended
from backends.triton.streaming.rows import rows_near, rows_of

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803


@triton.jit
def streamed(
    w_ptr,
    x_ptr,
    norm_ptr,
    y_ptr,
    residual_ptr,
    k_ptr,
    v_ptr,
    rotation_ptr,
    positions_ptr,
    table_ptr,
    parts_ptr,
    squares_ptr,
    arrived_ptr,
    n,
    k,
    apart,
    k_page,
    k_head,
    v_page,
    v_head,
    table_row,
    M: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLIT: tl.constexpr,
    AHEAD: tl.constexpr,
    NORMED: tl.constexpr,
    EPSILON: tl.constexpr,
    END: tl.constexpr,
    PAIRS_OF: tl.constexpr,
    Q_HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    PAGE: tl.constexpr,
    WHOLE_K: tl.constexpr,
    MULTIPLIED: tl.constexpr,
    DEPENDENT: tl.constexpr,
    NEAR: tl.constexpr,
):
    """One part of one tile; see ``call`` for the arguments."""
    tile = tl.program_id(0) // SPLIT
    part = tl.program_id(0) % SPLIT
    blocks = tl.cdiv(k, BLOCK_K)
    first = blocks * part // SPLIT
    last = blocks * (part + 1) // SPLIT
    rows = rows_of(tile, n, apart, ROWS, PAIRS_OF)
    w_rows = w_ptr + rows.to(tl.int64) * k
    ks = tl.arange(0, BLOCK_K)

    in_memory = (y_ptr, residual_ptr, k_ptr, v_ptr, rotation_ptr, positions_ptr, table_ptr)
    steps = (k_page, k_head, v_page, v_head, table_row)

    if DEPENDENT:
        cuda.gdc_launch_dependents()
        if NEAR:
            rows_near(w_ptr, rows, k, first * BLOCK_K, last * BLOCK_K, BLOCK_K * NEAR)
        cuda.gdc_wait()

    if MULTIPLIED:
        ms = tl.arange(0, COLUMNS)
        acc = tl.zeros((ROWS, COLUMNS), tl.float32)
        square = tl.zeros((COLUMNS, BLOCK_K), tl.float32)
        x_rows = x_ptr + ms[:, None] * k
        for block in tl.range(first, last, num_stages=AHEAD):
            at = block * BLOCK_K + ks
            there = at < k
            if WHOLE_K:
                w = tl.load(w_rows[:, None] + at[None, :])
                x = tl.load(x_rows + at[None, :], mask=(ms < M)[:, None], other=0.0)
            else:
                w = tl.load(w_rows[:, None] + at[None, :], mask=there[None, :], other=0.0)
                x = tl.load(x_rows + at[None, :], mask=(ms < M)[:, None] & there[None, :], other=0.0)
            if NORMED:
                scale = tl.load(norm_ptr + at, mask=there, other=0.0)
                wide = x.to(tl.float32)
                square += wide * wide
                x = (wide * scale.to(tl.float32)[None, :]).to(x.dtype)
            acc = tl.dot(w, x.T, acc, input_precision="ieee")
        sums = acc
        squares = tl.sum(square, 1)
    else:
        # One row of X as a row of the tile, so that its numbers are loaded where those of W are that they meet.
        products = tl.zeros((ROWS, BLOCK_K), tl.float32)
        square = tl.zeros((1, BLOCK_K), tl.float32)
        for block in tl.range(first, last, loop_unroll_factor=AHEAD):
            at = (block * BLOCK_K + ks)[None, :]
            there = at < k
            if WHOLE_K:
                w = tl.load(w_rows[:, None] + at)
                x = tl.load(x_ptr + at).to(tl.float32)
            else:
                w = tl.load(w_rows[:, None] + at, mask=there, other=0.0)
                x = tl.load(x_ptr + at, mask=there, other=0.0).to(tl.float32)
            if NORMED:
                square += x * x
                x = x * tl.load(norm_ptr + at, mask=there, other=0.0).to(tl.float32)
            products += w.to(tl.float32) * x
        sums = tl.sum(products, 1)[:, None]
        squares = tl.sum(square, 1)

    columns = tl.arange(0, COLUMNS)
    is_last = True
    if SPLIT > 1:
        held = tile.to(tl.int64) * SPLIT
        places = tl.arange(0, ROWS)[:, None] + columns[None, :] * ROWS
        tl.store(parts_ptr + (held + part) * (ROWS * COLUMNS) + places, sums)
        if NORMED:
            tl.store(squares_ptr + (held + part) * COLUMNS + columns, squares)
        tl.debug_barrier()  # every thread's part is written before one of them says so
        is_last = tl.atomic_add(arrived_ptr + tile, 1, sem="acq_rel") == SPLIT - 1
        if is_last:
            sums = tl.zeros((ROWS, COLUMNS), tl.float32)
            squares = tl.zeros((COLUMNS,), tl.float32)
            together: tl.constexpr = 8192 // (ROWS * COLUMNS)  # parts under way: a thread holds a few numbers of each
            for each in tl.range(0, SPLIT, loop_unroll_factor=max(1, min(SPLIT, together))):
                sums += tl.load(parts_ptr + (held + each) * (ROWS * COLUMNS) + places, cache_modifier=".cg")
                if NORMED:
                    squares += tl.load(squares_ptr + (held + each) * COLUMNS + columns, cache_modifier=".cg")
            tl.store(arrived_ptr + tile, 0)
    if is_last:
        if NORMED:
            sums = sums * tl.rsqrt(squares / k + EPSILON)[None, :]
        ended(sums, in_memory, steps, tile, n, M, END, Q_HEADS, KV_HEADS, PAIRS_OF, PAGE)
