"""Grouped products on torch devices: C[row] = A[row] B[group of the row]^T, by libraries and by roofbench's own kernels.

A is (rows x k), the B of all groups one matrix (groups n x k), group after group; C is (rows x n).
"""

from backends.torch.grouped_gemm.preparing import prepare
from backends.torch.grouped_gemm.refusals import reason

__all__ = ["prepare", "reason"]
