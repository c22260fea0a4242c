"""numpy numbers rounded to a format that numpy may not have."""

import numpy as np
from numpy.typing import NDArray

from suite.collectives.number_format import NumberFormat

Values = NDArray[np.float64]


def rounded(values: Values, fmt: NumberFormat) -> Values:
    """Round to the nearest number that ``fmt`` has, ties to even, beyond the largest to the largest.

    The result converts to the format without another rounding.
    """
    if not fmt.significand_bits:
        return np.clip(np.rint(values), -fmt.largest, fmt.largest)
    exponents = np.maximum(np.frexp(values)[1] - 1, fmt.smallest_exponent)
    units = np.ldexp(1.0, exponents - (fmt.significand_bits - 1))
    nearest_multiples: Values = np.rint(values / units) * units
    return np.clip(nearest_multiples, -fmt.largest, fmt.largest)
