"""Rows of one head, loaded and stored through a tensor descriptor or through pointers.

Operands are (batch, head, row, width) with any steps but the last, which is 1.  A descriptor of blocks ``[1, 1, ROWS, WIDTH]``
clips at the last row by itself; pointers are given the steps, and ``EDGE`` where a block may pass the last row.
"""

import triton
import triton.language as tl

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803


@triton.jit
def pointers_to(operand, batch, head, row, steps, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Addresses of a block: 64-bit to its first row, 32-bit within."""
    start = operand + tl.cast(batch, tl.int64) * steps[0] + tl.cast(head, tl.int64) * steps[1]
    within = tl.arange(0, ROWS)[:, None] * steps[2] + tl.arange(0, WIDTH)[None, :]
    return start + tl.cast(row, tl.int64) * steps[2] + within


@triton.jit
def load_rows(
    operand,
    batch,
    head,
    row,
    length,
    steps,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    DESCRIBED: tl.constexpr,
    EDGE: tl.constexpr,
):
    """A block of ``ROWS`` x ``WIDTH`` from ``row`` on, zero behind the last row."""
    if DESCRIBED:
        block = operand.load([batch, head, row, 0]).reshape(ROWS, WIDTH)
    else:
        pointers = pointers_to(operand, batch, head, row, steps, ROWS, WIDTH)
        inside = (row + tl.arange(0, ROWS) < length)[:, None]
        block = tl.load(pointers, mask=inside, other=0.0) if EDGE else tl.load(pointers)
    return block


@triton.jit
def store_rows(
    operand,
    batch,
    head,
    row,
    length,
    steps,
    block,
    DESCRIBED: tl.constexpr,
):
    """A block that may pass the last row."""
    if DESCRIBED:
        operand.store([batch, head, row, 0], block.to(operand.dtype).reshape(1, 1, block.shape[0], block.shape[1]))
    else:
        pointers = pointers_to(operand, batch, head, row, steps, block.shape[0], block.shape[1])
        inside = (row + tl.arange(0, block.shape[0]) < length)[:, None]
        tl.store(pointers, block.to(operand.dtype.element_ty), mask=inside)
