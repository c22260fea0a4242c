"""Storing rows of a matrix up to any one of them by TMA, which clips only at the end of an axis."""

import torch
from triton.tools.tensor_descriptor import TensorDescriptor

TALL, MOST_ROWS = 0x7FFF0000, 1 << 30  # what a descriptor's outer axes are said to hold, and its third


def within_groups(c: torch.Tensor, block: list[int]) -> TensorDescriptor:
    """A descriptor of C by which rows before any one row can be stored, and no others: hardware clips at the end of an axis.

    The third axis has 2**30 rows and is stored to so many rows before its end.  Place 2**30 of the first, which steps by 2**34
    less a row, and place ``end`` of the second, which steps by a row, bring the address back to where it belongs, for addresses
    are taken modulo 2**64.  It is the way of ``triton.tools.ragged_tma``, whose functions Triton's interpreter does not take.
    """
    rows, columns = c.shape
    assert rows <= MOST_ROWS
    row = c.stride(0)
    return TensorDescriptor(c, [TALL, TALL, MOST_ROWS, columns], [2**34 - row, row, row, 1], [1, 1, *block])
