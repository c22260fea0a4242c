"""Decoding over a paged KV cache on torch devices, by libraries and by roofbench's own kernels.

A cache is (pages, KV heads, tokens of a page, columns).  The output is a matrix: a row of O for each query head of each new
token of each sequence.
"""

from backends.torch.decode.preparing import prepare
from backends.torch.decode.refusals import reason

__all__ = ["prepare", "reason"]
