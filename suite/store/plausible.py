"""Between what the numbers of a result lie, whatever was measured: one beyond was put into the file by something else.

The limits are far from any device, and such that what readers compute of these numbers stays a number.
"""

import math
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

LEAST = 1e-30  # that is not 0, of what is divided by: the quotient need not be a number


class Range(NamedTuple):
    """The least and the most, both included; between 0 and ``least_other`` there is nothing."""

    low: float
    high: float
    least_other: float = LEAST


_AGE_S = 1e9  # thirty years
_TIME, _CYCLES = Range(0.0, _AGE_S, 0.0), Range(0.0, 1e21)
_END, _END_IN_CYCLES = Range(-_AGE_S, _AGE_S, 0.0), Range(-1e21, 1e21, 0.0)  # one about a short time may begin below zero
_RATE, _FRACTION = Range(0.0, 1e30), Range(0.0, 1e12)
_ANY_SIZE, _WORK = Range(0.0, sys.float_info.max, 0.0), Range(0, math.inf, 0.0)  # work of refused giant shapes has no bound
_CLOCK, _POWER, _ENERGY = Range(0.0, 1e15), Range(0.0, 1e12), Range(0.0, 1e15)

RANGES: Mapping[str, Range] = {
    "p50_s": Range(1e-15, _AGE_S),
    **dict.fromkeys(("p05_s", "p95_s", "min_s"), _TIME),
    **dict.fromkeys(("interval_low_s", "interval_high_s"), _END),
    "p50_cycles": _CYCLES,
    **dict.fromkeys(("interval_low_cycles", "interval_high_cycles"), _END_IN_CYCLES),
    **dict.fromkeys(("flop_s", "bytes_s"), _RATE),
    **dict.fromkeys(("fraction_spec", "fraction_boost", "fraction_at_clock"), _FRACTION),
    "clock_hz": _CLOCK,  # 0 is what a device that sleeps tells
    "energy_j": _ENERGY,
    "power_w": _POWER,
    "count": Range(1, 2**63 - 1),
    **dict.fromkeys(("error_rel", "tolerance", "quantisation_error", "predicted_s"), _ANY_SIZE),
    **dict.fromkeys(("flops", "compulsory_bytes", "traffic_bytes", "predicted_bytes", "sets"), _WORK),
}
# Of telemetry by its unit; one that is not here may be anything.
UNITS: Mapping[str, Range] = {
    "Hz": _CLOCK,
    "W": _POWER,
    "J": _ENERGY,
    "s": Range(0.0, _AGE_S, 0.0),
    "C": Range(-273.15, 1e6, 0.0),
    **dict.fromkeys(("bytes", "bytes/s", "mask"), Range(0.0, 1e30, 0.0)),
}
PAIRS = (("interval_low_s", "interval_high_s"), ("interval_low_cycles", "interval_high_cycles"))


def refuse_implausible(name: str, value: float) -> None:
    """``ValueError`` for a number that the column of this name cannot have got from a measurement."""
    refuse_beyond(RANGES[name], value)


def refuse_beyond(limits: Range, value: float) -> None:
    """``ValueError`` for a number outside a range."""
    low, high, least_other = limits
    if not low <= value <= high:
        raise ValueError(f"{value!r} is not between {low:g} and {high:g}")
    if 0 < value < least_other:
        raise ValueError(f"{value!r} is above 0 and below {least_other:g}")


def refuse_crossed(row: Mapping[Any, Any]) -> None:
    """``ValueError`` for an interval that ends before it begins."""
    for first, last in PAIRS:
        low, high = row[first], row[last]
        if low is not None and high is not None and low > high:
            raise ValueError(f"{first} {low!r} is above {last} {high!r}")


def refuse_rates_of_nothing(row: Mapping[Any, Any]) -> None:
    """``ValueError`` for a rate of work that was none: rates are work over time."""
    for rate, work in (("flop_s", "flops"), ("bytes_s", "compulsory_bytes")):
        if row[rate] and not row[work]:
            raise ValueError(f"{rate} {row[rate]!r} is of no {work}")
