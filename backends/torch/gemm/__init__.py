"""GEMM on torch devices: C = A B with A m x k, B k x n, C m x n.

Implementation ``library`` is whoever torch hands a format to (``library``).  Emulated fp32 and fp64 go to cuBLAS itself
(``backends.torch.emulated``).  Implementations ``triton``, ``triton_tuned`` and ``gluon`` are roofbench's own
kernels (``backends.triton.ladder``) on the same buffers.  ``compiled`` is torch's compiler (``compiled``); ``epilogue`` has
what follows a product within a launch.
"""

from backends.torch.gemm.preparing import prepare
from backends.torch.gemm.refusals import reason
from backends.torch.gemm.sizes import a_view, b_view

__all__ = ["a_view", "b_view", "prepare", "reason"]
