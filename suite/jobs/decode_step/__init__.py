"""A decode step of a whole model: every layer's weights once, attention over a paged KV cache, norms, logits."""

from suite.jobs.decode_step.formats import FORMATS
from suite.jobs.decode_step.job import DISTRIBUTIONS, IMPLEMENTATIONS, DecodeStepJob, DecodeStepSettings
from suite.jobs.decode_step.sizes import STEP, WEIGHTS, Product, Sizes, sizes_of

__all__ = [
    "DISTRIBUTIONS",
    "FORMATS",
    "IMPLEMENTATIONS",
    "STEP",
    "WEIGHTS",
    "DecodeStepJob",
    "DecodeStepSettings",
    "Product",
    "Sizes",
    "sizes_of",
]
