"""Paged decoding through shared memory: a pipeline of copies gathers keys and values by page while earlier ones are worked on.

The rows of a product are the queries of a group of heads; blocks of keys may lie in several pages, or be part of one.  For
every format, width and device that Triton compiles for; 8-bit numbers are converted as they leave shared memory.

``TAIL`` more columns of Q and K than ``WIDTH`` stand behind the others (MLA: 512 of the latent and 64 that turn with the
position).  With ``SHARED`` the values are the first ``WIDTH`` columns of the keys, loaded once.
"""

import triton
import triton.language as tl

from backends.triton.decode.merge import VARIED, finished
from backends.triton.decode.units import SMALLEST_UNIT, in_units

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803


@triton.jit
def entries_of(table, at, end, BLOCK: tl.constexpr, PAGE: tl.constexpr):
    """The page of each token of a block, or the one of all of them; 0 behind the end, where the table may end."""
    if PAGE >= BLOCK:
        entries = tl.load(table + at // PAGE, mask=at < end, other=0)
    else:
        tokens = at + tl.arange(0, BLOCK)
        entries = tl.load(table + tokens // PAGE, mask=tokens < end, other=0)
    return entries


@triton.jit
def offsets_of(entries, at, page_step, token_step, BLOCK: tl.constexpr, PAGE: tl.constexpr):
    """Where the rows of a block start; blocks start at multiples of ``BLOCK``."""
    tokens = tl.arange(0, BLOCK)
    within = at % PAGE + tokens if PAGE >= BLOCK else tokens % PAGE
    return entries.to(tl.int64) * page_step + within * token_step


@triton.jit
def numbers_at(start, offsets, inside, WIDTH: tl.constexpr, FORMAT: tl.constexpr, MASKED: tl.constexpr):
    """Rows of keys or values as the product takes them, zero where not ``inside``."""
    pointers = start + offsets[:, None] + tl.arange(0, WIDTH)[None, :]
    rows = tl.load(pointers, mask=inside[:, None], other=0.0) if MASKED else tl.load(pointers)
    if FORMAT == "fp8_e4m3" or FORMAT == "int8":
        rows = rows.to(tl.float16)
    return rows


@triton.jit
def attended(
    acc,
    total,
    peak,
    unit,
    q,
    q_tail,
    k_start,
    v_start,
    ks_start,
    vs_start,
    entries,
    at,
    end,
    limit,
    k_page,
    v_page,
    scale_page,
    token_step,
    scale_log2,
    BLOCK: tl.constexpr,
    WIDTH: tl.constexpr,
    TAIL: tl.constexpr,
    SHARED: tl.constexpr,
    PAGE: tl.constexpr,
    FORMAT: tl.constexpr,
    TOKEN_SCALES: tl.constexpr,
    MASKED: tl.constexpr,
):
    """Sums over one block of keys, added to those there are; a row sees keys up to ``limit``."""
    tokens = at + tl.arange(0, BLOCK)
    inside = tokens < end
    offsets = offsets_of(entries, at, k_page, token_step, BLOCK, PAGE)
    k = numbers_at(k_start, offsets, inside, WIDTH, FORMAT, MASKED)
    scores = tl.dot(q, k.T, input_precision="ieee")
    if TAIL:
        k_tail = numbers_at(k_start + WIDTH, offsets, inside, TAIL, FORMAT, MASKED)
        scores = tl.dot(q_tail, k_tail.T, scores, input_precision="ieee")
    if TOKEN_SCALES:
        scale_at = offsets_of(entries, at, scale_page, 1, BLOCK, PAGE)
        k_scales = tl.load(ks_start + scale_at, mask=inside, other=0.0) if MASKED else tl.load(ks_start + scale_at)
        scores = scores * (k_scales * scale_log2)[None, :]
    else:
        scores = scores * scale_log2
    if MASKED:
        scores = tl.where(tokens[None, :] <= limit[:, None], scores, float("-inf"))
    now = tl.maximum(peak, tl.max(scores, 1))
    base = now
    if MASKED:  # a row that has seen nothing has no maximum
        base = tl.where(now == float("-inf"), 0.0, now)
    shrink = tl.exp2(peak - base)
    weights = tl.exp2(scores - base[:, None])
    total = total * shrink + tl.sum(weights, 1)
    if TOKEN_SCALES:
        v_scales = tl.load(vs_start + scale_at, mask=inside, other=0.0) if MASKED else tl.load(vs_start + scale_at)
        units, fewer, unit = in_units(v_scales, unit)
        shrink = shrink * fewer
        weights = weights * units[None, :]
    acc = acc * shrink[:, None]
    if SHARED:
        v = k
    else:
        offsets = offsets_of(entries, at, v_page, token_step, BLOCK, PAGE)
        v = numbers_at(v_start, offsets, inside, WIDTH, FORMAT, MASKED)
    acc = tl.dot(weights.to(v.dtype), v, acc, input_precision="ieee")
    return acc, total, now, unit


@triton.jit(do_not_specialize=VARIED)
def decode_staged(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    lse_ptr,
    k_scale_ptr,
    v_scale_ptr,
    table_ptr,
    items_ptr,
    parts_ptr,
    parts_lse_ptr,
    arrived_ptr,
    q_batch,
    q_row,
    q_head,
    o_batch,
    o_row,
    o_head,
    k_page,
    k_head,
    v_page,
    v_head,
    scale_page,
    scale_head,
    table_row,
    kv_heads,
    most_splits,
    scale_log2,
    TOKEN_STEP: tl.constexpr,
    GROUP: tl.constexpr,
    Q_LEN: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    WIDTH: tl.constexpr,
    TAIL: tl.constexpr,
    SHARED: tl.constexpr,
    PAGE: tl.constexpr,
    FORMAT: tl.constexpr,
    TOKEN_SCALES: tl.constexpr,
    AT_ONCE: tl.constexpr,
    STAGES: tl.constexpr,
    ALL_MASKED: tl.constexpr,
):
    """One split of one sequence, KV head and block of ``ROWS`` rows; see ``call`` for the arguments.

    The loop itself reads the page table one block ahead: copies of keys and values then have all ``STAGES``, of which the
    compiler would leave them half behind a load of its own.
    """
    blocks: tl.constexpr = (GROUP * Q_LEN + ROWS - 1) // ROWS  # of rows, side by side: they read the same keys
    row = tl.program_id(0) % blocks * ROWS
    kv_head = tl.program_id(0) // blocks % kv_heads
    item = items_ptr + tl.program_id(0) // blocks // kv_heads * 8
    sequence = tl.load(item)
    begin = tl.load(item + 1)
    end = tl.load(item + 2)
    split = tl.load(item + 3)
    splits = tl.load(item + 4)
    kv_len = tl.load(item + 5)
    table = table_ptr + tl.cast(sequence, tl.int64) * table_row
    eight_bits: tl.constexpr = FORMAT == "fp8_e4m3" or FORMAT == "int8"

    following = entries_of(table, begin, end, BLOCK, PAGE)
    rows = row + tl.arange(0, ROWS)
    i = rows // GROUP
    inside = rows < GROUP * Q_LEN
    q_starts = q_ptr + tl.cast(sequence, tl.int64) * q_batch + i * q_row + (kv_head * GROUP + rows % GROUP) * q_head
    q = tl.load(q_starts[:, None] + tl.arange(0, WIDTH)[None, :], mask=inside[:, None], other=0.0)
    q_tail = q
    if TAIL:
        q_tail = tl.load(q_starts[:, None] + (WIDTH + tl.arange(0, TAIL))[None, :], mask=inside[:, None], other=0.0)
    if eight_bits:
        q = q.to(tl.float16)
        q_tail = q_tail.to(tl.float16)

    k_start = k_ptr + tl.cast(kv_head, tl.int64) * k_head
    v_start = v_ptr + tl.cast(kv_head, tl.int64) * v_head
    ks_start = k_scale_ptr + kv_head * scale_head
    vs_start = v_scale_ptr + kv_head * scale_head
    factor = 1.0
    if eight_bits and not TOKEN_SCALES:
        scale_log2 *= tl.load(k_scale_ptr)
        factor = tl.load(v_scale_ptr)
    acc = tl.zeros((ROWS, WIDTH), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    peak = tl.full((ROWS,), float("-inf"), tl.float32)
    unit = SMALLEST_UNIT
    limit = tl.minimum(kv_len - Q_LEN + i, end - 1)
    # Blocks that every row sees to their end, and those behind.
    whole_end = tl.minimum(end, tl.maximum(begin, (kv_len - Q_LEN + 1) // BLOCK * BLOCK))
    whole_end = whole_end // BLOCK * BLOCK
    for masked in tl.static_range(1 if ALL_MASKED else 0, 2):
        first = whole_end if masked and not ALL_MASKED else begin
        last = end if masked else whole_end
        for at in tl.range(first, last, BLOCK, num_stages=STAGES if ALL_MASKED or not masked else 1):
            entries = following
            following = entries_of(table, at + BLOCK, end, BLOCK, PAGE)
            acc, total, peak, unit = attended(
                acc,
                total,
                peak,
                unit,
                q,
                q_tail,
                k_start,
                v_start,
                ks_start,
                vs_start,
                entries,
                at,
                end,
                limit,
                k_page,
                v_page,
                scale_page,
                TOKEN_STEP,
                scale_log2,
                BLOCK,
                WIDTH,
                TAIL,
                SHARED,
                PAGE,
                FORMAT,
                TOKEN_SCALES,
                masked == 1,
            )

    if TOKEN_SCALES:
        acc = acc * unit
    finished(
        acc,
        total,
        peak,
        factor,
        o_ptr,
        lse_ptr,
        parts_ptr,
        parts_lse_ptr,
        arrived_ptr,
        sequence,
        split,
        splits,
        most_splits,
        kv_head,
        kv_heads,
        row,
        (o_batch, o_row, o_head),
        tl.arange(0, WIDTH),
        GROUP,
        Q_LEN,
        AT_ONCE,
    )
