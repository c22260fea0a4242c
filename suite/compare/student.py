"""Tails of Student's t, for tests at the small levels that a correction over many cases asks for."""

import math
from statistics import NormalDist

_NORMAL_FROM = 400  # degrees: from here on the normal's tail is within a hundredth of it down to one in a hundred thousand


def upper_tail(t: float, degrees: int) -> float:
    """The probability that Student's t with that many degrees of freedom exceeds ``t``.

    By the finite series for whole degrees (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4).
    """
    assert degrees >= 1, "a spread known from one value is not known"
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    if degrees >= _NORMAL_FROM:
        return 1.0 - NormalDist().cdf(t) if t < 0 else NormalDist().cdf(-t)
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term = total = cosine if odd else 1.0
    for step in range(3 if odd else 2, degrees - 1, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    within = 2 / math.pi * (angle + sine * total * (degrees > 1)) if odd else sine * total
    return max(0.0, (1.0 - within) / 2)
