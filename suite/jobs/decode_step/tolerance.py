"""How far each stage of a right step can be from the exact one of what the stages before left."""

import math
from collections.abc import Mapping

from suite.case import Workload
from suite.jobs.decode_step.formats import activation_of, as_gemm
from suite.jobs.decode_step.sizes import WEIGHTS, Sizes, sizes_of
from suite.jobs.gemm import GemmJob

FP32_ROUNDOFF = 2.0**-24
GEMM = GemmJob()
# How often what a stage works on is rounded on its way, squares of gains included: launches of their own may write everything
# between two stages.  q, k and v: the normed stream (twice, norm and its weights apart), the product, the rotation.  attention:
# weights and output, and K where it is converted.  mid and out: the product, the sum.  act: the normed stream (twice) and the
# product, each of both halves (gains of g silu'(g) and of u: 1.4 and 1, squares 2 and 1), the activation, the product of both.
# logits: the normed stream (twice), the product.
ROUNDINGS: Mapping[str, float] = {
    "embedding": 1.0,
    "q": 4.0,
    "k": 4.0,
    "v": 4.0,
    "attention": 4.0,
    "mid": 2.0,
    "act": 11.0,
    "out": 2.0,
    "logits": 3.0,
}


def stage_tolerances(workload: Workload) -> dict[str, float]:
    """By stage; of weights alone by product.

    Roundings to the nearest that are independent add as squares do: the root of their number times the unit roundoff is more
    than twice what they come to, since a norm of random ones is under half of it (``suite.jobs.gemm.tolerance``).  Four
    standard deviations are allowed of sums in fp32 over what a stage adds up.  No stage inherits an error: each is held against
    the exact result of its own inputs, so that depth adds nothing.
    """
    sizes = sizes_of(workload)
    if sizes.part == WEIGHTS:
        return {each.name: GEMM.tolerance(as_gemm(workload, sizes, each), ()) for each in sizes.products}
    roundoff = activation_of(workload).roundoff
    return {
        stage: math.sqrt(roundings) * roundoff + 4 * FP32_ROUNDOFF * math.sqrt(_terms(stage, sizes))
        for stage, roundings in ROUNDINGS.items()
    }


def tolerance(workload: Workload) -> float:
    """Of the stage that may be the furthest off; what others are off counts by so much more."""
    return max(stage_tolerances(workload).values())


def _terms(stage: str, sizes: Sizes) -> int:
    """How many terms the sums of a stage have."""
    terms = {
        "embedding": 0,
        "attention": sizes.kv_len + sizes.head_dim,
        "mid": sizes.q_width,
        "out": sizes.intermediate_size,
    }
    return terms.get(stage, sizes.hidden_size)
