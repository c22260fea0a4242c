"""What becomes of a tile of sums (rows of W x columns, a column for each row of X) once they are whole."""

import triton
import triton.language as tl

from backends.triton.streaming.norm import made_ready

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803


@triton.jit
def halves(sums):
    """A tile's two halves of rows.

    One column is picked apart by sums with zeros: where it is split, ptxas 12.8 (Triton 3.6) spills all that programs that stay
    have in registers.
    """
    rows: tl.constexpr = sums.shape[0] // 2
    columns: tl.constexpr = sums.shape[1]
    both = sums.reshape(2, rows, columns)
    if columns == 1:
        half = tl.arange(0, 2)[:, None, None]
        low = tl.sum(tl.where(half == 0, both, 0.0), 0)
        high = tl.sum(tl.where(half == 1, both, 0.0), 0)
    else:
        low, high = both.permute(1, 2, 0).split()
    return low, high


@triton.jit
def plain(sums, y_ptr, tile, n, M: tl.constexpr):
    """Y (m x n)."""
    rows = tile * sums.shape[0] + tl.arange(0, sums.shape[0])[:, None]
    columns = tl.arange(0, sums.shape[1])[None, :]
    places = columns.to(tl.int64) * n + rows
    tl.store(y_ptr + places, sums.to(y_ptr.dtype.element_ty), mask=(rows < n) & (columns < M))


@triton.jit
def added(sums, before, weights, y_ptr, scaled_ptr, left_ptr, tile, n, M: tl.constexpr):
    """Y = residual + sums, both m x n, made ready for the norm behind; ``before`` is the residual's tile."""
    rows = tile * sums.shape[0] + tl.arange(0, sums.shape[0])[:, None]
    columns = tl.arange(0, sums.shape[1])[None, :]
    places = columns.to(tl.int64) * n + rows
    there = (rows < n) & (columns < M)
    numbers = (before.to(tl.float32) + sums).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + places, numbers, mask=there)
    squares = made_ready(numbers, weights, there, places, scaled_ptr)
    each = tl.arange(0, sums.shape[1])
    tl.store(left_ptr + tile * M + each, squares, mask=each < M)


@triton.jit
def swiglu(sums, y_ptr, tile, n, M: tl.constexpr):
    """Y (m x n) = silu(gate) up; gates are a tile's first half of rows."""
    gate, up = halves(sums)
    rows = tile * gate.shape[0] + tl.arange(0, gate.shape[0])[:, None]
    columns = tl.arange(0, gate.shape[1])[None, :]
    active = gate * up / (1.0 + tl.exp(-gate))
    places = columns.to(tl.int64) * n + rows
    tl.store(y_ptr + places, active.to(y_ptr.dtype.element_ty), mask=(rows < n) & (columns < M))


@triton.jit
def rotated(
    sums,
    cosine,
    sine,
    position,
    page,
    q_ptr,
    k_ptr,
    v_ptr,
    tile,
    k_page,
    k_head,
    v_page,
    v_head,
    M: tl.constexpr,
    Q_HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HALF_HEAD: tl.constexpr,
    PAGE: tl.constexpr,
):
    """A part of one head: of q to Q (m, q_heads, columns), of k and v to the newest token's place in their caches.

    Heads of q come first, then those of k, then those of v, which do not turn.  Caches are (pages, heads, tokens, columns).
    """
    low, high = halves(sums)
    rows: tl.constexpr = low.shape[0]
    head_dim: tl.constexpr = 2 * HALF_HEAD
    head = tile * rows // HALF_HEAD
    at = (tile * rows % HALF_HEAD + tl.arange(0, rows))[:, None]
    sequences = tl.arange(0, low.shape[1])[None, :]
    there = (sequences < M) & (at >= 0)
    first = low * cosine - high * sine
    second = high * cosine + low * sine
    if head < Q_HEADS:
        place = q_ptr + (sequences.to(tl.int64) * Q_HEADS + head) * head_dim + at
        tl.store(place, first.to(q_ptr.dtype.element_ty), mask=there)
        tl.store(place + HALF_HEAD, second.to(q_ptr.dtype.element_ty), mask=there)
    else:
        within = (position % PAGE) * head_dim
        is_key = head < Q_HEADS + KV_HEADS
        kv_head = head - Q_HEADS - tl.where(is_key, 0, KV_HEADS)
        if is_key:
            place = k_ptr + page.to(tl.int64) * k_page + kv_head.to(tl.int64) * k_head + within + at
            tl.store(place, first.to(k_ptr.dtype.element_ty), mask=there)
            tl.store(place + HALF_HEAD, second.to(k_ptr.dtype.element_ty), mask=there)
        else:
            place = v_ptr + page.to(tl.int64) * v_page + kv_head.to(tl.int64) * v_head + within + at
            tl.store(place, first.to(v_ptr.dtype.element_ty), mask=there)
            tl.store(place + HALF_HEAD, second.to(v_ptr.dtype.element_ty), mask=there)


@triton.jit
def read_beside(
    read,
    tile,
    n,
    table_row,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    M: tl.constexpr,
    END: tl.constexpr,
    Q_HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HALF_HEAD: tl.constexpr,
    PAGE: tl.constexpr,
):
    """What an end reads beside a tile of ``ROWS`` x ``COLUMNS`` sums, which may be loaded before there are any.

    ``read`` are the residual, weights of the norm behind it, ``rotation`` (positions, columns), which has cosines and sines,
    positions and the table.  Four numbers: of what is ``rotated`` cosines, sines, positions and pages; of ``residual`` its tile
    and a norm's weights in the place of the first two.
    """
    residual_ptr, norm_ptr, rotation_ptr, positions_ptr, table_ptr = read
    one, two, position, page = 0.0, 0.0, 0, 0
    if END == "residual":
        rows = tile * ROWS + tl.arange(0, ROWS)[:, None]
        columns = tl.arange(0, COLUMNS)[None, :]
        places = columns.to(tl.int64) * n + rows
        one = tl.load(residual_ptr + places, mask=(rows < n) & (columns < M), other=0.0)
        two = tl.load(norm_ptr + rows, mask=rows < n, other=0.0)
    elif END == "rotated":
        half: tl.constexpr = ROWS // 2
        head = tile * half // HALF_HEAD
        at = (tile * half % HALF_HEAD + tl.arange(0, half))[:, None]
        sequences = tl.arange(0, COLUMNS)[None, :]
        position = tl.load(positions_ptr + sequences, mask=sequences < M, other=0)
        turns = rotation_ptr + position.to(tl.int64) * (2 * HALF_HEAD) + at
        turning = (sequences < M) & (at >= 0) & (head < Q_HEADS + KV_HEADS)
        one = tl.load(turns, mask=turning, other=1.0)
        two = tl.load(turns + HALF_HEAD, mask=turning, other=0.0)
        written = (sequences < M) & (head >= Q_HEADS)
        page = tl.load(table_ptr + sequences.to(tl.int64) * table_row + position // PAGE, mask=written, other=0)
    return one, two, position, page


@triton.jit
def ended(
    sums,
    beside,
    written,
    steps,
    tile,
    n,
    M: tl.constexpr,
    END: tl.constexpr,
    Q_HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    PAIRS_OF: tl.constexpr,
    PAGE: tl.constexpr,
):
    """The one of the above that a product has; ``PAIRS_OF`` as in ``rows``, of what is rotated half of a head's columns.

    ``beside`` is what was read by ``read_beside``.  ``written`` are Y, that times a norm's weights, sums of its squares, K and
    V; ``steps`` are from page to page and from head to head in K and in V.
    """
    y_ptr, scaled_ptr, left_ptr, k_ptr, v_ptr = written
    k_page, k_head, v_page, v_head = steps
    one, two, position, page = beside
    if END == "plain":
        plain(sums, y_ptr, tile, n, M)
    elif END == "residual":
        added(sums, one, two, y_ptr, scaled_ptr, left_ptr, tile, n, M)
    elif END == "swiglu":
        swiglu(sums, y_ptr, tile, n // 2, M)
    else:
        rotated(
            sums,
            one,
            two,
            position,
            page,
            y_ptr,
            k_ptr,
            v_ptr,
            tile,
            k_page,
            k_head,
            v_page,
            v_head,
            M,
            Q_HEADS,
            KV_HEADS,
            PAIRS_OF,
            PAGE,
        )
