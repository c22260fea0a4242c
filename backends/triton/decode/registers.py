"""Paged decoding of an 8-bit cache whose numbers go from memory to the multiplier's registers, not through shared memory.

One warp goes through a split of a sequence's keys, ``BLOCK`` at a time: S^T = K Q^T and O^T = V^T P^T, so that keys and values
are the left operands of ``mma.m16n8k16`` and the few queries (all rows of a group of heads) its narrow right one.  A lane holds
16 bytes of a key's row and adjacent ones of a value's; which number of a head stands where along a product's axis is free, and
is chosen so that what a lane has loaded is what the instruction wants of it.  Loads of the next block, and of the page table
for the one after, are under way while one is worked on: the loop's own variables are the buffers.

Names of axes: ``t`` tokens by their bits (high, 3, 2-1, 0), ``g`` segments of 64 bytes, ``c`` chunks, ``w`` words of a chunk.
"""

import triton
import triton.language as tl

from backends.triton.decode.merge import VARIED, finished
from backends.triton.decode.units import SMALLEST_UNIT, in_units
from backends.triton.decode.words import across_words, along_words

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202, N803


@triton.jit
def _axis(count: tl.constexpr, axis: tl.constexpr):
    """0, 1, ... along one of six axes; by single steps, from which the compiler knows that neighbours are adjacent."""
    numbers = tl.arange(0, count)
    for _ in tl.static_range(axis):
        numbers = tl.expand_dims(numbers, 0)
    for _ in tl.static_range(5 - axis):
        numbers = tl.expand_dims(numbers, -1)
    return numbers


@triton.jit
def words_at(start, entries, page_step, within):
    """Words of a block, of which a lane takes those along the last axis, and lanes go along the two axes before.

    The compiler deals axes out to lanes in the order of how contiguous they are, and is told so; only that of the last is
    looked at otherwise.
    """
    return tl.load(tl.max_contiguous(start + entries.to(tl.int64) * page_step + within, [1, 1, 1, 2, 4, 8]))


@triton.jit
def entries_of(table, at, end, tokens, PAGE: tl.constexpr):
    """Pages of ``tokens`` of the block at ``at``; 0 behind the end, where the table may end."""
    places = at + tokens
    return tl.load(table + places // PAGE, mask=places < end, other=0)


@triton.jit
def within_page(at, tokens, BLOCK: tl.constexpr, PAGE: tl.constexpr):
    """Where in its page a token stands; blocks start at multiples of ``BLOCK``."""
    return tokens % PAGE if PAGE <= BLOCK else at % PAGE + tokens


@triton.jit
def attended(
    acc,
    total,
    peak,
    unit,
    q,
    k_words,
    even_words,
    odd_words,
    k_scales,
    v_scales,
    at,
    end,
    limit,
    scale_log2,
    BLOCK: tl.constexpr,
    WIDTH: tl.constexpr,
    FORMAT: tl.constexpr,
    TOKEN_SCALES: tl.constexpr,
    MASKED: tl.constexpr,
    ASM: tl.constexpr,
):
    """Sums over one block of keys, added to those there are; a row sees keys up to ``limit``."""
    # (t, 3, g, 2-0, c, w), then the number of the word
    k = along_words(k_words, FORMAT, ASM).permute(0, 1, 3, 2, 5, 4, 6).reshape(BLOCK, WIDTH)
    scores = tl.dot(k, q)
    scores = scores * (k_scales * scale_log2)[:, None] if TOKEN_SCALES else scores * scale_log2
    tokens = at + tl.arange(0, BLOCK)
    if MASKED:
        scores = tl.where(tokens[:, None] <= limit[None, :], scores, float("-inf"))
    now = tl.maximum(peak, tl.max(scores, 0))
    base = now
    if MASKED:  # a row that has seen nothing has no maximum
        base = tl.where(now == float("-inf"), 0.0, now)
    shrink = tl.exp2(peak - base)
    weights = tl.exp2(scores - base[None, :])
    total = total * shrink + tl.sum(weights, 0)
    if TOKEN_SCALES:
        if MASKED:
            v_scales = tl.where(tokens < end, v_scales, 0.0)
        units, fewer, unit = in_units(v_scales, unit)
        shrink = shrink * fewer
        weights = weights * units[:, None]
    acc = acc * shrink[None, :]
    if MASKED:  # nothing is known of what stands behind the last token of a page
        there = at + _axis(BLOCK // 16, 0) * 16 + _axis(2, 1) * 2 + _axis(4, 4) * 4
        even_words = tl.where(there < end, even_words, 0)
        odd_words = tl.where(there + 1 < end, odd_words, 0)
    # (t, 1, h, c, 3-2, w), then token 0 or 1 and the number's place by two bits
    v = across_words(even_words, odd_words, FORMAT, ASM).permute(8, 7, 2, 5, 3, 0, 4, 1, 6).reshape(WIDTH, BLOCK)
    acc = tl.dot(v, weights.to(q.dtype), acc)
    return acc, total, now, unit


@triton.jit(do_not_specialize=VARIED)
def decode_by_registers(
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
    PAGE: tl.constexpr,
    FORMAT: tl.constexpr,
    TOKEN_SCALES: tl.constexpr,
    AT_ONCE: tl.constexpr,
    ASM: tl.constexpr,
):
    """One split of one sequence, KV head and block of ``ROWS`` rows; see ``call`` for the arguments.

    ``k_ptr`` and ``v_ptr`` are of words of 32 bits, as are ``k_page``, ``k_head``, ``TOKEN_STEP`` and V's.
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
    words: tl.constexpr = WIDTH // 4  # of a row
    chunk: tl.constexpr = 4 if words >= 32 else words // 8  # words of a value's row that a lane loads at once
    high: tl.constexpr = words // (8 * chunk)
    segments: tl.constexpr = words // 16

    # Where a lane finds its words
    k_tokens = _axis(BLOCK // 16, 0) * 16 + _axis(2, 1) * 8 + _axis(8, 3)
    v_tokens = _axis(BLOCK // 16, 0) * 16 + _axis(2, 1) * 2 + _axis(4, 4) * 4
    s_tokens = tl.arange(0, BLOCK)
    k_groups = _axis(BLOCK // 16, 0) * 16 if PAGE >= 16 else k_tokens
    v_groups = _axis(BLOCK // 16, 0) * 16 if PAGE >= 16 else v_tokens
    k_places = _axis(segments, 2) * 16 + _axis(4, 4) * 4 + _axis(4, 5)
    v_places = (_axis(high, 2) * 8 + _axis(8, 3)) * chunk + _axis(chunk, 5)
    k_start = k_ptr + tl.cast(kv_head, tl.int64) * k_head
    v_start = v_ptr + tl.cast(kv_head, tl.int64) * v_head
    ks_start = k_scale_ptr + kv_head * scale_head
    vs_start = v_scale_ptr + kv_head * scale_head

    k_entries = entries_of(table, begin, end, k_groups, PAGE)
    v_entries = entries_of(table, begin, end, v_groups, PAGE)
    o_entries = entries_of(table, begin, end, v_tokens + 1, PAGE) if PAGE == 1 else v_entries
    s_entries = entries_of(table, begin, end, s_tokens, PAGE)
    k_in = within_page(begin, k_tokens, BLOCK, PAGE) * TOKEN_STEP + k_places
    v_in = within_page(begin, v_tokens, BLOCK, PAGE) * TOKEN_STEP + v_places
    o_in = within_page(begin, v_tokens + 1, BLOCK, PAGE) * TOKEN_STEP + v_places
    k_words = words_at(k_start, k_entries, k_page, k_in)
    even_words = words_at(v_start, v_entries, v_page, v_in)
    odd_words = words_at(v_start, o_entries, v_page, o_in)
    k_scales = tl.full((BLOCK,), 1.0, tl.float32)
    v_scales = k_scales
    if TOKEN_SCALES:
        s_at = s_entries.to(tl.int64) * scale_page + within_page(begin, s_tokens, BLOCK, PAGE)
        k_scales = tl.load(ks_start + s_at)
        v_scales = tl.load(vs_start + s_at)
    k_entries = entries_of(table, begin + BLOCK, end, k_groups, PAGE)
    v_entries = entries_of(table, begin + BLOCK, end, v_groups, PAGE)
    o_entries = entries_of(table, begin + BLOCK, end, v_tokens + 1, PAGE) if PAGE == 1 else v_entries
    s_entries = entries_of(table, begin + BLOCK, end, s_tokens, PAGE)

    # Q^T, asked for behind the first keys and values; its numbers stand as those of K do: (g, w, c, number of the word)
    rows = row + tl.arange(0, ROWS)
    i = rows // GROUP
    inside = rows < GROUP * Q_LEN
    place = tl.arange(0, WIDTH)
    number = place // 64 * 64 + place // 4 % 4 * 16 + place // 16 % 4 * 4 + place % 4
    q_starts = q_ptr + tl.cast(sequence, tl.int64) * q_batch + i * q_row + (kv_head * GROUP + rows % GROUP) * q_head
    q = tl.load(q_starts[None, :] + number[:, None], mask=inside[None, :], other=0.0).to(tl.float16)

    factor = 1.0
    if not TOKEN_SCALES:
        scale_log2 *= tl.load(k_scale_ptr)
        factor = tl.load(v_scale_ptr)
    acc = tl.zeros((WIDTH, ROWS), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    peak = tl.full((ROWS,), float("-inf"), tl.float32)
    unit = SMALLEST_UNIT
    limit = tl.minimum(kv_len - Q_LEN + i, end - 1)
    # Blocks that every row sees to their end, and those behind.
    whole_end = tl.minimum(end, tl.maximum(begin, (kv_len - Q_LEN + 1) // BLOCK * BLOCK))
    whole_end = whole_end // BLOCK * BLOCK
    for masked in tl.static_range(2):
        first = whole_end if masked else begin
        last = end if masked else whole_end
        for at in tl.range(first, last, BLOCK, num_stages=1):
            ahead = at + BLOCK
            k_in = within_page(ahead, k_tokens, BLOCK, PAGE) * TOKEN_STEP + k_places
            v_in = within_page(ahead, v_tokens, BLOCK, PAGE) * TOKEN_STEP + v_places
            o_in = within_page(ahead, v_tokens + 1, BLOCK, PAGE) * TOKEN_STEP + v_places
            next_k = words_at(k_start, k_entries, k_page, k_in)
            next_even = words_at(v_start, v_entries, v_page, v_in)
            next_odd = words_at(v_start, o_entries, v_page, o_in)
            next_ks = k_scales
            next_vs = v_scales
            if TOKEN_SCALES:
                s_at = s_entries.to(tl.int64) * scale_page + within_page(ahead, s_tokens, BLOCK, PAGE)
                next_ks = tl.load(ks_start + s_at)
                next_vs = tl.load(vs_start + s_at)
            k_entries = entries_of(table, ahead + BLOCK, end, k_groups, PAGE)
            v_entries = entries_of(table, ahead + BLOCK, end, v_groups, PAGE)
            o_entries = entries_of(table, ahead + BLOCK, end, v_tokens + 1, PAGE) if PAGE == 1 else v_entries
            s_entries = entries_of(table, ahead + BLOCK, end, s_tokens, PAGE)
            acc, total, peak, unit = attended(
                acc,
                total,
                peak,
                unit,
                q,
                k_words,
                even_words,
                odd_words,
                k_scales,
                v_scales,
                at,
                end,
                limit,
                scale_log2,
                BLOCK,
                WIDTH,
                FORMAT,
                TOKEN_SCALES,
                masked == 1,
                ASM,
            )
            k_words = next_k
            even_words = next_even
            odd_words = next_odd
            k_scales = next_ks
            v_scales = next_vs

    # O^T has its numbers by place in the word, then (h, w, c)
    m = tl.arange(0, WIDTH)
    columns = ((m // (8 * chunk) % high * 8 + m % 8) * chunk + m // 8 % chunk) * 4 + m // words
    if TOKEN_SCALES:
        acc = acc * unit
    finished(
        acc.T,
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
        columns,
        GROUP,
        Q_LEN,
        AT_ONCE,
    )
