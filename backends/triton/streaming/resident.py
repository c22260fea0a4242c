"""Y = x W^T for one row of x as ``kernel`` has it, by programs that stay: each goes through an equal share of all blocks of W.

Blocks lie tile by tile (``ROWS`` rows of W), along K in each.  Copies of ``AHEAD`` blocks are under way all the time, from one
tile into the next: no program starts anew, and all end together.  A share begins and ends wherever it does; programs that have
parts of one tile, ``SHARING`` at most, leave them for the last of them to end, which adds them up in one order whoever that is,
so that equal inputs give equal bits.
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
def first_of(program, programs, items):
    """Where a program's share of the items begins."""
    return (program.to(tl.int64) * items // programs).to(tl.int32)


@triton.jit
def owner_of(item, programs, items):
    """Whose share an item is in."""
    return (((item.to(tl.int64) + 1) * programs - 1) // items).to(tl.int32)


@triton.jit
def resident(
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
    tiles,
    M: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SHARING: tl.constexpr,
    AHEAD: tl.constexpr,
    NORMED: tl.constexpr,
    SLOTS: tl.constexpr,
    EPSILON: tl.constexpr,
    END: tl.constexpr,
    PAIRS_OF: tl.constexpr,
    Q_HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    PAGE: tl.constexpr,
    WHOLE_K: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """One share; see ``call`` for the arguments.  A program leaves at most two parts: of its first tile, and of its last."""
    program = tl.program_id(0)
    programs = tl.num_programs(0)
    if DEPENDENT:
        cuda.gdc_launch_dependents()
    blocks = tl.cdiv(k, BLOCK_K)
    items = tiles * blocks
    first = first_of(program, programs, items)
    last = first_of(program + 1, programs, items)
    ks = tl.arange(0, BLOCK_K)

    read = (residual_ptr, norm_ptr, rotation_ptr, positions_ptr, table_ptr)
    written = (y_ptr, scaled_ptr, left_ptr, k_ptr, v_ptr)
    steps = (k_page, k_head, v_page, v_head)

    if DEPENDENT:
        cuda.gdc_wait()

    factor = 1.0
    if NORMED:
        # A number alone: as a tile it would have those of the loop lie as it does, read from shared memory one by one.
        factor = tl.rsqrt(tl.sum(sums_of_squares(squares_ptr, SLOTS, 1, 1), 0) / k + EPSILON)
    products = tl.zeros((ROWS, BLOCK_K), tl.float32)
    for item in tl.range(first, last, num_stages=AHEAD):
        tile = item // blocks
        at = (item % blocks * BLOCK_K + ks)[None, :]
        there = at < k
        w_rows = w_ptr + rows_of(tile, n, apart, ROWS, PAIRS_OF).to(tl.int64) * k
        if WHOLE_K:
            w = tl.load(w_rows[:, None] + at)
            x = tl.load(x_ptr + at).to(tl.float32)
        else:
            w = tl.load(w_rows[:, None] + at, mask=there, other=0.0)
            x = tl.load(x_ptr + at, mask=there, other=0.0).to(tl.float32)
        products += w.to(tl.float32) * x

        begins = tile * blocks
        is_through = item + 1 == begins + blocks
        if is_through | (item + 1 == last):
            sums = tl.sum(products, 1)[:, None] * factor
            products = tl.zeros((ROWS, BLOCK_K), tl.float32)
            if is_through & (begins >= first):
                beside = read_beside(read, tile, n, table_row, ROWS, 1, M, END, Q_HEADS, KV_HEADS, PAIRS_OF, PAGE)
                ended(sums, beside, written, steps, tile, n, M, END, Q_HEADS, KV_HEADS, PAIRS_OF, PAGE)
            else:
                slot = 2 * program.to(tl.int64) + (begins > first)
                tl.store(parts_ptr + slot * ROWS + tl.arange(0, ROWS)[:, None], sums)

    tl.debug_barrier()  # every thread's parts are written before one of them says so
    for which in tl.static_range(2):
        tile = (last - 1) // blocks if which else first // blocks
        begins = tile * blocks
        is_part = (begins > first) & (last < begins + blocks) if which else (first > begins) | (last < begins + blocks)
        if is_part:
            lowest = owner_of(begins, programs, items)
            highest = owner_of(begins + blocks - 1, programs, items)
            if tl.atomic_add(arrived_ptr + tile, 1, sem="acq_rel") == highest - lowest:
                tl.store(arrived_ptr + tile, 0)
                others = lowest + tl.arange(0, SHARING)
                slots = 2 * others.to(tl.int64) + (begins > first_of(others, programs, items))
                places = slots[None, :] * ROWS + tl.arange(0, ROWS)[:, None]
                has_part = (others <= highest)[None, :]
                sums = tl.sum(tl.load(parts_ptr + places, mask=has_part & (places >= 0), other=0.0, cache_modifier=".cg"), 1)
                sums = sums[:, None]
                beside = read_beside(read, tile, n, table_row, ROWS, 1, M, END, Q_HEADS, KV_HEADS, PAIRS_OF, PAGE)
                ended(sums, beside, written, steps, tile, n, M, END, Q_HEADS, KV_HEADS, PAIRS_OF, PAGE)
