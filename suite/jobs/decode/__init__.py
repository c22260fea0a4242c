"""Decoding over a paged KV cache: O = softmax(Q K^T / sqrt(head_dim)) V of the latest tokens of many sequences."""

from suite.jobs.decode.formats import ACTIVATIONS, FORMATS, activation_of, scaling_of
from suite.jobs.decode.job import DISTRIBUTIONS, IMPLEMENTATIONS, DecodeJob, DecodeSettings
from suite.jobs.decode.sizes import Sizes, sizes_of

__all__ = [
    "ACTIVATIONS",
    "DISTRIBUTIONS",
    "FORMATS",
    "IMPLEMENTATIONS",
    "DecodeJob",
    "DecodeSettings",
    "Sizes",
    "activation_of",
    "scaling_of",
    "sizes_of",
]
