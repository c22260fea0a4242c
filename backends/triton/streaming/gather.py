"""Rows of an embedding by their numbers: the first launch of a decode step."""

import triton
import triton.language as tl

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803


@triton.jit
def gathered(embedding_ptr, tokens_ptr, y_ptr, width, BLOCK: tl.constexpr):
    """``y`` (tokens x width) = embedding[tokens]; a program has ``BLOCK`` numbers of one row."""
    row = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = columns < width
    token = tl.load(tokens_ptr + row).to(tl.int64)
    numbers = tl.load(embedding_ptr + token * width + columns, mask=there, other=0.0)
    tl.store(y_ptr + row.to(tl.int64) * width + columns, numbers, mask=there)
