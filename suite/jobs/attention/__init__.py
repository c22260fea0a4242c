"""Attention over whole sequences: O = softmax(Q K^T / sqrt(head_dim)) V, and the gradients of Q, K and V."""

from suite.jobs.attention.formats import FORMATS, HADAMARD
from suite.jobs.attention.job import DISTRIBUTIONS, IMPLEMENTATIONS, AttentionJob, AttentionSettings
from suite.jobs.attention.sizes import Sizes, sizes_of

__all__ = [
    "DISTRIBUTIONS",
    "FORMATS",
    "HADAMARD",
    "IMPLEMENTATIONS",
    "AttentionJob",
    "AttentionSettings",
    "Sizes",
    "sizes_of",
]
