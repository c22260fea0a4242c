"""How far a right result can be from decoding, in float64, of queries and cache as they are stored."""

import math

from suite.case import Workload
from suite.jobs.decode.formats import ACTIVATIONS, activation_of
from suite.jobs.decode.sizes import sizes_of

FP32_ROUNDOFF = 2.0**-24
# Of the output, of the weights as the second product takes them, and of K as it is converted beside queries of 16 bits.
ROUNDINGS = 3.0


def tolerance(workload: Workload) -> float:
    """Unit roundoffs of the activations, and what sums add.

    As for attention (``suite.jobs.attention.tolerance``): three roundings to the nearest in a row that are independent stay
    under the sum of their unit roundoffs by a factor of about three, and four standard deviations are allowed of sums in fp32
    over the longest sequence and over ``head_dim``.  The cache's own rounding is no error here: the reference has it too.
    """
    sizes, roundoff = sizes_of(workload), ACTIVATIONS[activation_of(workload)].roundoff
    return ROUNDINGS * roundoff + 4 * FP32_ROUNDOFF * (math.sqrt(max(sizes.tokens)) + math.sqrt(sizes.head_dim))
