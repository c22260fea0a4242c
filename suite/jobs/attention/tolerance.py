"""How far a right result can be from attention, in float64, of the operands as they are stored."""

import math

from suite.case import Workload
from suite.jobs.attention.formats import FORMATS
from suite.jobs.attention.sizes import sizes_of

FP32_ROUNDOFF = 2.0**-24
FP8_ACCUMULATE_ROUNDOFF = 2.0**-14  # about 14 significant bits on Hopper (DeepSeek-V3 technical report, section 3.3.2)
# A weight is as far off as its score: by the format's roundoff times the score where scores are materialised in the format.
# Under weights exp(s) of standard normal scores E[s^2 e^(2s)] / E[e^(2s)] = 5, whose root is rounded up.  A rounding to the
# nearest moves a number by under half of the roundoff in the mean, so that this asks one roundoff.
SCORES = 1.0
# Of a gradient: those of the weights and of their slopes as products take them, of the slopes before (dP), and its own.
GRADIENT_ROUNDINGS = 4.0


def tolerance(workload: Workload) -> float:
    """Unit roundoffs of the output, of the weights that the second product takes and of the scores, and what sums add.

    A rounding to the nearest moves a number by at most the unit roundoff, a norm of random ones by under half of it (Higham,
    "Accuracy and Stability of Numerical Algorithms", theorem 2.2): three in a row that are independent stay under the sum of
    them by a factor of about three.  Sums of n terms in fp32 err as sqrt(n) of a random walk; four standard deviations are
    allowed of those over ``kv_len`` and ``head_dim``.  FlashAttention is checked upstream against twice the error of a
    materialised attention in the same format (github.com/Dao-AILab/flash-attention, tests), which is what this comes to.
    """
    fmt, sizes = FORMATS[workload.format], sizes_of(workload)
    roundings = fmt.roundoff + fmt.weight_roundoff + SCORES * fmt.roundoff
    if sizes.is_backward:
        roundings = (GRADIENT_ROUNDINGS + SCORES) * fmt.roundoff
    sums = 4 * FP32_ROUNDOFF * (math.sqrt(sizes.kv_len) + math.sqrt(sizes.head_dim))
    if fmt.pipe == "fp8":
        sums += FP8_ACCUMULATE_ROUNDOFF * math.sqrt(sizes.head_dim)
    return roundings + sums
