"""What a comparison with the reference cannot tell from a right result of attention or decoding, whichever library computes it.

By distribution of the data: the wrong result has the same numbers.
"""

import math
from collections.abc import Sequence

from suite.case import Workload
from suite.jobs.decode import DecodeJob, Sizes
from suite.measure.verify import PROJECTION_ALLOWANCE

ATTENTION = {
    "zeros": (
        "operands read in another layout",
        "results kept from other data",
        "a wrong scale",
        "a wrong mask",
        "swapped heads",
    ),
    "constant": (
        "operands read in another layout",
        "results kept from other data",
        "a wrong scale of the scores",
        "a wrong mask",
        "keys left out",
        "swapped heads",
    ),
}

DECODE = {
    "zeros": ("a page of another sequence", "results kept from other data", "a wrong scale", "a wrong mask", "swapped heads"),
    "outliers": ("single keys left out",),  # beside scores of outliers they weigh nothing
    "constant": (
        "a page of another sequence",
        "results kept from other data",
        "a wrong scale of the scores",
        "keys left out",
        "swapped heads",
    ),
}


def of_decode(workload: Workload, sizes: Sizes) -> Sequence[str]:
    """What the check does not see on this data, and in sequences this long.

    Another sequence's numbers in one page change a row by about sqrt(2 x its tokens / the row's) of its size.
    """
    spots = list(DECODE.get(workload.distribution, ()))
    seen = PROJECTION_ALLOWANCE * DecodeJob().tolerance(workload, ())
    if math.sqrt(2 * sizes.page_size / max(sizes.tokens)) < seen and workload.distribution not in DECODE:
        spots.append("a single wrong page in the middle of the longest sequence")
    return spots
