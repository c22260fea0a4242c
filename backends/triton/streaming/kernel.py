"""Y = X W^T with weights W (n x k) that are streamed: read once, for few rows of X (m x k), with what a decoder puts around it.

Tiles of W's rows are shared by ``SPLIT`` programs, each of which sums over a part of K; the last of them to arrive adds the
parts up, always in the same order, so that equal inputs give equal bits.  Sums are W X^T: a column for each row of X.

NORMED    sums are divided by the root mean square of rows of what X was before, see ``norm``, whose ``SLOTS`` a program of one
          row that has all of K adds up on the way.
END       see ``ends``; ``swiglu`` and ``rotated`` need pairs of W's rows, which lie ``apart``: the first half of a tile's rows
          is that of the pairs' first rows.
DEPENDENT see ``dependent``.
"""

import triton
import triton.language as tl
from triton.language.extra import cuda

from backends.triton.streaming.ends import ended, read_beside
from backends.triton.streaming.norm import sums_of_squares
from backends.triton.streaming.rows import rows_of

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803


@triton.jit
def streamed(
    w_ptr,
    x_ptr,
    squares_ptr,
    y_ptr,
    residual_ptr,
    norm_ptr,
    scaled_ptr,
    left_ptr,
    k_ptr,
    v_ptr,
    rotation_ptr,
    positions_ptr,
    table_ptr,
    parts_ptr,
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
    SLOTS: tl.constexpr,
    A_BLOCK: tl.constexpr,
    EPSILON: tl.constexpr,
    END: tl.constexpr,
    PAIRS_OF: tl.constexpr,
    Q_HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    PAGE: tl.constexpr,
    WHOLE_K: tl.constexpr,
    MULTIPLIED: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One part of one tile; see ``call`` for the arguments."""
    if DEPENDENT:
        cuda.gdc_launch_dependents()
    tile = tl.program_id(0) // SPLIT
    part = tl.program_id(0) % SPLIT
    blocks = tl.cdiv(k, BLOCK_K)
    first = blocks * part // SPLIT
    last = blocks * (part + 1) // SPLIT
    rows = rows_of(tile, n, apart, ROWS, PAIRS_OF)
    w_rows = w_ptr + rows.to(tl.int64) * k
    ks = tl.arange(0, BLOCK_K)

    read = (residual_ptr, norm_ptr, rotation_ptr, positions_ptr, table_ptr)
    written = (y_ptr, scaled_ptr, left_ptr, k_ptr, v_ptr)
    steps = (k_page, k_head, v_page, v_head)

    if DEPENDENT:
        cuda.gdc_wait()

    if MULTIPLIED:
        ms = tl.arange(0, COLUMNS)
        acc = tl.zeros((ROWS, COLUMNS), tl.float32)
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
            acc = tl.dot(w, x.T, acc, input_precision="ieee")
        sums = acc
    else:
        beside = read_beside(read, tile, n, table_row, ROWS, COLUMNS, M, END, Q_HEADS, KV_HEADS, PAIRS_OF, PAGE)
        # One row of X as a row of the tile, so that its numbers are loaded where those of W are that they meet.
        products = tl.zeros((ROWS, BLOCK_K), tl.float32)
        square = tl.zeros((max(1, A_BLOCK),), tl.float32)
        for block in tl.range(first, last, loop_unroll_factor=AHEAD):
            at = (block * BLOCK_K + ks)[None, :]
            there = at < k
            if WHOLE_K:
                w = tl.load(w_rows[:, None] + at)
                x = tl.load(x_ptr + at).to(tl.float32)
            else:
                w = tl.load(w_rows[:, None] + at, mask=there, other=0.0)
                x = tl.load(x_ptr + at, mask=there, other=0.0).to(tl.float32)
            if A_BLOCK:
                slot = block * A_BLOCK + tl.arange(0, A_BLOCK)
                square += tl.load(squares_ptr + slot, mask=slot < SLOTS, other=0.0)
            products += w.to(tl.float32) * x
        sums = tl.sum(products, 1)[:, None]
        if A_BLOCK:
            squares = tl.sum(square, 0)

    columns = tl.arange(0, COLUMNS)
    is_last = True
    if SPLIT > 1:
        held = tile.to(tl.int64) * SPLIT
        places = tl.arange(0, ROWS)[:, None] + columns[None, :] * ROWS
        tl.store(parts_ptr + (held + part) * (ROWS * COLUMNS) + places, sums)
        tl.debug_barrier()  # every thread's part is written before one of them says so
        is_last = tl.atomic_add(arrived_ptr + tile, 1, sem="acq_rel") == SPLIT - 1
        if is_last:
            sums = tl.zeros((ROWS, COLUMNS), tl.float32)
            together: tl.constexpr = 8192 // (ROWS * COLUMNS)  # parts under way: a thread holds a few numbers of each
            for each in tl.range(0, SPLIT, loop_unroll_factor=max(1, min(SPLIT, together))):
                sums += tl.load(parts_ptr + (held + each) * (ROWS * COLUMNS) + places, cache_modifier=".cg")
            tl.store(arrived_ptr + tile, 0)
    if is_last:
        if NORMED:
            if A_BLOCK == 0:
                squares = sums_of_squares(squares_ptr, SLOTS, M, COLUMNS)[None, :]
            sums = sums * tl.rsqrt(squares / k + EPSILON)
        if MULTIPLIED:  # before there are sums, registers are needed for these
            beside = read_beside(read, tile, n, table_row, ROWS, COLUMNS, M, END, Q_HEADS, KV_HEADS, PAIRS_OF, PAGE)
        ended(sums, beside, written, steps, tile, n, M, END, Q_HEADS, KV_HEADS, PAIRS_OF, PAGE)
