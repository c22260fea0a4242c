"""What comes before and after the gradients for Hopper: where the sums of a block of 64 queries begin, and dQ from its sums."""

import triton
import triton.language as tl

from backends.triton.attention.rows import pointers_to

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803


@triton.jit
def prepare_blocks(
    o, do, lse_ptr, begins_ptr, sums_ptr, o_batch, o_head, o_row, do_batch, do_head, do_row, q_len, heads, scale,
    WIDTH: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """What the sums of scores, of slopes and of dQ begin with, in fp32, for each block of 64 queries of a head.

    ``begins`` is (batch x heads, blocks, 2, 64): minus the logarithm of sums over ``scale``, and minus the sum of a row's
    products of O and dO.  Past the last query weights are to be 0, whose logarithm is minus infinity.  ``sums`` is
    (batch x heads, blocks, 64 WIDTH), all zero.
    """
    row = tl.program_id(0) * ROWS
    place = tl.program_id(1)
    batch = place // heads
    head = place % heads
    rows = row + tl.arange(0, ROWS)
    inside = rows < q_len
    out = tl.load(pointers_to(o, batch, head, row, (o_batch, o_head, o_row), ROWS, WIDTH), mask=inside[:, None], other=0.0)
    above = tl.load(
        pointers_to(do, batch, head, row, (do_batch, do_head, do_row), ROWS, WIDTH), mask=inside[:, None], other=0.0
    )
    block = tl.cast(place, tl.int64) * tl.num_programs(0) + tl.program_id(0)
    lse = tl.load(lse_ptr + tl.cast(place, tl.int64) * q_len + rows, mask=inside, other=float("inf"))
    begins = begins_ptr + block * 2 * ROWS + tl.arange(0, ROWS)
    tl.store(begins, -lse / scale)
    tl.store(begins + ROWS, -tl.sum(out.to(tl.float32) * above.to(tl.float32), 1))
    tl.store(sums_ptr + block * ROWS * WIDTH + tl.arange(0, ROWS * WIDTH), tl.zeros((ROWS * WIDTH,), tl.float32))


@triton.jit
def round_sums(sums_ptr, dq, dq_batch, dq_head, dq_row, q_len, heads, scale, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    """dQ as it is stored, from its sums in fp32."""
    row = tl.program_id(0) * ROWS
    place = tl.program_id(1)
    block = (tl.cast(place, tl.int64) * tl.num_programs(0) + tl.program_id(0)) * ROWS * WIDTH
    sums = as_rows(tl.load(sums_ptr + block + tl.arange(0, ROWS * WIDTH)), WIDTH)
    pointers = pointers_to(dq, place // heads, place % heads, row, (dq_batch, dq_head, dq_row), ROWS, WIDTH)
    inside = (row + tl.arange(0, ROWS) < q_len)[:, None]
    tl.store(pointers, (sums * scale).to(dq.dtype.element_ty), mask=inside)


@triton.jit
def as_rows(held, WIDTH: tl.constexpr):
    """What ``hopper_backward.as_held`` was given."""
    return held.reshape(WIDTH // 8, 4, 8, 4, 2, 2).permute(1, 4, 2, 0, 3, 5).reshape(64, WIDTH)
