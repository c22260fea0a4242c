"""Rows of an embedding by their numbers: the first launch of a decode step."""

import triton
import triton.language as tl

from backends.triton.streaming.norm import made_ready

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803


@triton.jit
def gathered(embedding_ptr, tokens_ptr, y_ptr, norm_ptr, scaled_ptr, left_ptr, width, BLOCK: tl.constexpr):
    """``y`` (tokens x width) = embedding[tokens], made ready for a norm; a program has ``BLOCK`` numbers of one row."""
    row = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = columns < width
    token = tl.load(tokens_ptr + row).to(tl.int64)
    numbers = tl.load(embedding_ptr + token * width + columns, mask=there, other=0.0)
    places = row.to(tl.int64) * width + columns
    tl.store(y_ptr + places, numbers, mask=there)
    weights = tl.load(norm_ptr + columns, mask=there, other=0.0)
    square = made_ready(numbers, weights, there, places, scaled_ptr)
    tl.store(left_ptr + tl.program_id(1) * tl.num_programs(0) + row, square)
