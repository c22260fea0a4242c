"""Blocks of matrices: through a tensor descriptor, or through pointers on a device that has none."""

import triton
import triton.language as tl

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# ruff: noqa: ANN001, ANN201, N803, RET505  # a constant condition needs its else: code after a return is compiled too


@triton.jit
def block_of(
    blocks, row, column, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WHOLE: tl.constexpr, DESCRIBED: tl.constexpr
):
    """``ROWS`` x ``COLUMNS`` of a matrix of rows x columns, zeros past its end.

    ``WHOLE`` is what of it has whole blocks, "rows" or "columns".
    """
    if DESCRIBED:
        return blocks.load([row, column])
    else:
        in_rows = row + tl.arange(0, ROWS)
        in_columns = column + tl.arange(0, COLUMNS)
        inside = (in_columns < columns)[None, :] if WHOLE == "rows" else (in_rows < rows)[:, None]
        return tl.load(blocks + in_rows[:, None].to(tl.int64) * columns + in_columns[None, :], mask=inside, other=0.0)
