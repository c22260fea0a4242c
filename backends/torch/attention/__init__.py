"""Attention on torch devices: forward and backward, by libraries and by roofbench's own kernels.

Operands are (batch, heads, rows, columns).  The output is a matrix: a row of O for each query of each head, or the gradients of
Q, K and V one after the other.
"""

from backends.torch.attention.preparing import prepare
from backends.torch.attention.refusals import reason

__all__ = ["prepare", "reason"]
