"""Attention through XLA: as products and a softmax, by ``jax.nn``, by cuDNN and by the kernel that JAX ships for TPUs.

The output is a matrix: a row of O for each query of each head, or the gradients of Q, K and V one after the other.
"""

from backends.jax.attention.preparing import prepare
from backends.jax.attention.refusals import reason

__all__ = ["prepare", "reason"]
