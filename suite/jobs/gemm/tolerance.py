"""How far a right result can be from the product of the operands as they are stored."""

import math
from collections.abc import Mapping
from typing import Any

from suite.case import Workload
from suite.jobs.gemm.epilogue import epilogue_of
from suite.jobs.gemm.formats import FORMATS, GemmFormat, variant_of

# Hopper sums fp8 products with about 14 significant bits when fast accumulation is on, and promotes them to fp32 every 128
# terms when it is off (DeepSeek-V3 technical report, section 3.3.2).  On an H200 fast accumulation of normal data was seen
# to add an error of 0.9e-3 at K = 2048, 2.1e-3 at 8192, 3.1e-3 at 16384 and 6.3e-3 at 53248: up to 2.7e-5 sqrt(K).
FP8_ACCUMULATE_ROUNDOFF = 2.0**-14
FP8_PROMOTED_TERMS = 128
# Summing k random terms with a rounding to fp16 after each moves the sum by 2^-11 sqrt(k / 12) of its own size; tensor cores
# round after several terms, to the nearest (Fasi and others, 2021, "Numerical behavior of NVIDIA tensor cores").
FP16_ACCUMULATE_ROUNDOFF = 0.5 * 2.0**-11
# torch's kernels for 4-bit weights round (8 - zero point) scale, up to eight steps, to bf16 for a group of 128 numbers.  Beside
# an outlier the others are within a step of zero: seen to move products by up to 5.4 units of bf16, where 3 are allowed else
# (torch 2.13 on a CPU, 300 draws of 5 shapes).
ROUNDINGS_OF_SHIFTED_OUTLIERS = 4.0


def tolerance(workload: Workload, switches: Mapping[str, Any]) -> float:
    """Twice the unit roundoff of the output, half of it for each operand rounded too, and what accumulating ``k`` terms adds.

    A rounding to the nearest moves a number by at most the unit roundoff (Higham, "Accuracy and Stability of Numerical
    Algorithms", theorem 2.2), and a norm of random ones by under half of it: three units are the worst case of an output and
    two operands together.  Errors of a sum of k terms grow as sqrt(k) for a random walk; four standard deviations are allowed.
    Integers are exact.  Splits of K that are summed in the output's format add one more rounding.  An emulation of a format
    keeps its accuracy, so it is held to the same.

    Each step of an epilogue may be a launch of its own, which rounds what it writes: half a unit more for each.  No
    activation here has a slope above 1.13: errors of the product pass through about as they are.
    """
    fmt, variant, k = FORMATS[workload.format], variant_of(workload), workload.param("k")
    if not variant.roundoff:
        return 0.0
    if fmt.operand_roundoff:
        return 2 * fmt.operand_roundoff
    roundings = (3.0 if switches.get("reduced_precision_reduction") else 2.0) + variant.rounded / 2
    roundings += epilogue_of(workload).steps / 2
    if variant.b.zero_point_bytes and workload.distribution == "outliers":
        roundings += ROUNDINGS_OF_SHIFTED_OUTLIERS
    return roundings * variant.roundoff + _accumulation(fmt, k, switches)


def _accumulation(fmt: GemmFormat, k: int, switches: Mapping[str, Any]) -> float:
    error = 4 * (2.0**-53 if fmt.accumulate == "fp64" else 2.0**-24) * math.sqrt(k)
    if fmt.pipe == "fp8":
        terms = k if switches.get("fp8_fast_accum") else min(k, FP8_PROMOTED_TERMS)
        error += FP8_ACCUMULATE_ROUNDOFF * math.sqrt(terms)
    if switches.get("fp16_accumulation"):
        error += FP16_ACCUMULATE_ROUNDOFF * math.sqrt(k)
    return error
