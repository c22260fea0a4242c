"""What a regime asks for: how many input sets, how long a window, and whether a load has become steady."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from suite.case import Regime
from suite.roofline import ENERGY_WINDOW_S
from suite.settings import MeasureSettings
from suite.work import Footprint

COLD_ROTATION = 3  # rotating inputs must cover this many times the last-level cache before one is used again
UNKNOWN_LLC_BYTES = 256 * 2**20  # what displaces any cache: the largest of an accelerator in the table
MOST_FLUSH_FACTOR = 64.0  # last-level caches before every launch: a slip of a digit is told before it takes the memory
PLACED_BYTES = 4 * 2**30  # sets beyond this are so large that each of them lies in many places by itself
PLACED_SHARE = 1 / 8  # of the memory that a case may use
SETS_AT_MOST = 4096  # a captured graph has a node for each set; beyond this, capture takes longer than it tells
BRIEF_SHARE = 0.5  # of a steady window: what a later round needs to bring back its own load after another kernel's turn
ENERGY_SPARE_S = 0.1  # one step of the counter: no window is then a hair under what its steps need


def rotating_sets(regime: Regime, footprint: Footprint, llc_bytes: int | None, cold_by: str, margin: float = 1.0) -> int:
    """How many input sets to allocate.

    Warm, or flushed between launches: one.  Cold by rotation: enough that their bytes cover three times the last-level
    cache, times ``margin``, and at least two, so that no launch finds its own outputs.  An unknown cache counts as the
    largest one known.
    """
    if regime.cache == "warm" or cold_by == "flush":
        return 1
    covered = COLD_ROTATION * margin * (llc_bytes or UNKNOWN_LLC_BYTES)
    return min(SETS_AT_MOST, max(2, math.ceil(covered / max(footprint.set_bytes, 1)) + 1))


def placed_sets(places: int, footprint: Footprint, memory_bytes: int | None) -> int:
    """How many input sets it takes to measure a case at ``places`` places in memory, as far as memory allows.

    Which pages of memory a buffer has shows in the time of what reads it, and a process asks for its buffers in one order: the
    same pages each time, and an interval that knows nothing of others.  Two passes of a selftest on an H200, at one place each,
    differed by 1.6 % in a product that reads a weight of 244 MB, where either interval was within 0.1 %.
    """
    most_bytes = PLACED_BYTES if memory_bytes is None else min(PLACED_BYTES, memory_bytes * PLACED_SHARE)
    return max(1, min(places, int(most_bytes // max(footprint.set_bytes, 1))))


def energy_window_s(settings: MeasureSettings) -> float:
    """Seconds that each window of a sustained load must last for the energy counter; 0 where energy is not asked for."""
    return ENERGY_WINDOW_S + ENERGY_SPARE_S if settings.energy else 0.0


class Reading(NamedTuple):
    """Means over one window: seconds per launch, and clock (Hz) and power (W) where they are read."""

    time_s: float
    clock_hz: float | None
    power_w: float | None


def settled(readings: Sequence[Reading], tolerance: float) -> bool:
    """Whether two successive means agree in clock and power, or in time where neither is read: of one window, or of several.

    What holds a device at its power limit goes round: an H200's clock and power rise and fall by 2 % once a second, so that
    means of half a second differ for as long as it lasts, and means of a second agree.
    """
    means = (
        (_mean_of(readings[-2 * count : -count]), _mean_of(readings[-count:])) for count in range(1, len(readings) // 2 + 1)
    )
    return any(_agree(before, after, tolerance) for before, after in means)


def _mean_of(readings: Sequence[Reading]) -> Reading:
    """The mean of windows of one length; what one of them lacks, it lacks."""
    time_s, clock_hz, power_w = (_mean(values) for values in zip(*readings, strict=True))
    assert time_s is not None, "every window has a time"
    return Reading(time_s, clock_hz, power_w)


def _agree(before: Reading, after: Reading, tolerance: float) -> bool:
    pairs = [(before.clock_hz, after.clock_hz), (before.power_w, after.power_w)]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        known = [(before.time_s, after.time_s)]
    return all(abs(b - a) <= tolerance * max(abs(a), abs(b)) for a, b in known)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None
