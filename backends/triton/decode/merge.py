"""What a split of a sequence's keys found, written for all of them together; the last of them to arrive puts them together.

Splits are added in the order of their numbers whoever is last, so that equal inputs give equal bits.
"""

import triton
import triton.language as tl

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803

VARIED = ("table_row", "most_splits")  # arguments of the kernels that are compiled into nothing, whatever their value
LN_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def written(out, lse, o, lse_ptr, sequence, kv_head, kv_heads, row, o_steps, columns, GROUP: tl.constexpr, Q_LEN: tl.constexpr):
    """Rows of a result (rows x columns) and their logarithms of sums (base 2) to O and ``lse`` (batch, q_len, q_heads)."""
    rows = row + tl.arange(0, out.shape[0])
    inside = rows < GROUP * Q_LEN
    i = rows // GROUP
    head = kv_head * GROUP + rows % GROUP
    starts = o + tl.cast(sequence, tl.int64) * o_steps[0] + i * o_steps[1] + head * o_steps[2]
    tl.store(starts[:, None] + columns[None, :], out.to(o.dtype.element_ty), mask=inside[:, None])
    lse_rows = (tl.cast(sequence, tl.int64) * Q_LEN + i) * (kv_heads * GROUP) + head
    tl.store(lse_ptr + lse_rows, lse * LN_2, mask=inside)


@triton.jit
def merged(
    parts,
    parts_lse,
    slot,
    slot_step,
    splits,
    rows,
    wanted,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """The splits of some rows put together, ``AT_ONCE`` under way at a time, and the logarithms of their sums (base 2)."""
    acc = tl.zeros((ROWS, COLUMNS), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    peak = tl.full((ROWS,), float("-inf"), tl.float32)
    columns = tl.arange(0, COLUMNS)
    for first in tl.range(0, splits, AT_ONCE, num_stages=1):
        for each in tl.static_range(AT_ONCE):
            at = slot + tl.cast(first + each, tl.int64) * slot_step
            there = wanted & (first + each < splits)
            lse = tl.load(parts_lse + at + rows, mask=there, other=float("-inf"), cache_modifier=".cg")
            part_ptrs = parts + (at + rows)[:, None] * COLUMNS + columns[None, :]
            part = tl.load(part_ptrs, mask=there[:, None], other=0.0, cache_modifier=".cg")
            now = tl.maximum(peak, lse)
            base = tl.where(now == float("-inf"), 0.0, now)
            shrink = tl.exp2(peak - base)
            weight = tl.exp2(lse - base)
            acc = acc * shrink[:, None] + weight[:, None] * part
            total = total * shrink + weight
            peak = now
    return whole_of(acc, total, peak)


@triton.jit
def whole_of(acc, total, peak):
    """Sums of weights and values (rows x columns) as a result and the logarithm of sums; rows without a key are 0 and -inf."""
    some = total > 0.0
    out = acc / tl.where(some, total, 1.0)[:, None]
    return out, tl.where(some, peak + tl.log2(total), float("-inf"))


@triton.jit
def finished(
    acc,
    total,
    peak,
    factor,
    o,
    lse_ptr,
    parts,
    parts_lse,
    arrived,
    sequence,
    split,
    splits,
    most_splits,
    kv_head,
    kv_heads,
    row,
    o_steps,
    columns,
    GROUP: tl.constexpr,
    Q_LEN: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    """The sums of one split (rows x columns), as they are or with those of the others, times ``factor``.

    ``columns`` says where each column of ``acc`` stands in O.  ``parts`` (batch x most_splits, kv_heads, rows, columns) and
    ``parts_lse`` are fp32; ``arrived`` (batch, kv_heads, rows) counts at the first of each block of rows, 0 before and after.
    """
    count: tl.constexpr = acc.shape[0]
    width: tl.constexpr = acc.shape[1]
    out, lse = whole_of(acc, total, peak)
    if splits == 1:
        written(out * factor, lse, o, lse_ptr, sequence, kv_head, kv_heads, row, o_steps, columns, GROUP, Q_LEN)
    else:
        rows = row + tl.arange(0, count)
        wanted = rows < GROUP * Q_LEN
        first_slot = (tl.cast(sequence, tl.int64) * most_splits * kv_heads + kv_head) * (GROUP * Q_LEN)
        slot_step = kv_heads * (GROUP * Q_LEN)
        slot = first_slot + tl.cast(split, tl.int64) * slot_step
        part_ptrs = parts + (slot + rows)[:, None] * width + tl.arange(0, width)[None, :]
        tl.store(part_ptrs, out, mask=wanted[:, None])
        tl.store(parts_lse + slot + rows, lse, mask=wanted)
        tl.debug_barrier()  # every thread's part is written before one of them says so
        counted = arrived + (sequence * kv_heads + kv_head) * (GROUP * Q_LEN) + row
        if tl.atomic_add(counted, 1, sem="acq_rel") == splits - 1:
            out, lse = merged(parts, parts_lse, first_slot, slot_step, splits, rows, wanted, count, width, AT_ONCE)
            written(out * factor, lse, o, lse_ptr, sequence, kv_head, kv_heads, row, o_steps, columns, GROUP, Q_LEN)
            tl.store(counted, 0)
