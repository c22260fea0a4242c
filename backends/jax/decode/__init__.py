"""Decoding through XLA over a paged cache: by gathering the pages, and by the kernel that JAX ships for TPUs.

The output is a matrix: a row for each query head of each new token of each sequence.
"""

from backends.jax.decode.preparing import prepare
from backends.jax.decode.refusals import reason

__all__ = ["prepare", "reason"]
