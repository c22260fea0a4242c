"""Correction of p-values over the cases of a comparison."""

from collections.abc import Sequence


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Each p-value as it counts among the others, in the order given.

    Of those at most 0.05 then at most 5 % are false in the mean; where none should be, the chance that any is at most 0.05
    is 5 % (Benjamini and Hochberg 1995).
    """
    largest_first = sorted(range(len(p_values)), key=lambda index: p_values[index], reverse=True)
    adjusted = [1.0] * len(p_values)
    least = 1.0
    for rank, index in zip(range(len(p_values), 0, -1), largest_first, strict=True):
        least = min(least, p_values[index] * (len(p_values) / rank))
        adjusted[index] = least
    return adjusted
