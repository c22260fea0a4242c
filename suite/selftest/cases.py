"""Which products a selftest measures on one device: sized so that each tells something and none takes long."""

import math
from typing import NamedTuple

from suite.case import Workload, items
from suite.jobs.gemm import FORMATS, GemmJob
from suite.plan import COLD
from suite.roofline import Ceilings, floors_s
from suite.rows import Calibration

FEW_ROWS = 16  # far under every ridge point, and what 8-bit products still accept
LONGEST_S = 0.02  # a launch at the device's peak: twenty samples then stay under a second, flushes included
SIDES = (8192, 4096, 2048, 1024, 512)
UNKNOWN_SIDE = 2048
MIDDLING_LLC_BYTES = 32 * 2**20  # to size by where none is known: a wrong guess makes a case tell less, not wrong
STEP = 256  # sides are multiples of it, so that no library pads
# Shares of the last-level cache that weights take: found there again wherever they lie (Hopper's halves keep copies of each
# other's data), and so far beyond it that where the allocator put them averages out.
IN_CACHE = 0.25
BEYOND_CACHE = 8

# The formats that models run in first; the second is one whose units differ from the first's.
FIRST = ("bf16", "fp16", "fp32")
SECOND = ("fp8_e4m3", "fp32", "fp64")


class Products(NamedTuple):
    """Two formats by five shapes: three squares from ``largest`` down, and few rows by weights in and beyond the cache."""

    formats: tuple[str, ...]
    shapes: tuple[str, ...]

    @property
    def largest(self) -> str:
        return self.shapes[0]


def products(limits: Ceilings) -> Products:
    """The products for one device.  A device without a sheet or a cache size gets those of a middling one."""
    formats = _formats(limits)
    side = _largest_side(limits, formats)
    widest = max(FORMATS[name].input_bytes for name in formats)
    llc_bytes = limits.llc_bytes or MIDDLING_LLC_BYTES
    squares = [f"{each}x{each}x{each}" for each in (side, side // 2, side // 4)]
    weights = [_side_of(share * llc_bytes / widest) for share in (IN_CACHE, BEYOND_CACHE)]
    return Products(formats, (*squares, *(f"{FEW_ROWS}x{each}x{each}" for each in weights)))


def _formats(limits: Ceilings) -> tuple[str, str]:
    """One format of each list, the first that the sheet has a peak for; a CPU's bf16 where it has instructions for it."""
    if limits.spec is None:
        return "bf16", "fp32"
    if limits.spec.derived:
        converted = _peak(limits, "bf16") == _peak(limits, "fp32")
        return ("fp32", "fp64") if converted else ("fp32", "bf16")
    first = next((name for name in FIRST if _peak(limits, name)), FIRST[0])
    others = [name for name in SECOND if name != first]
    return first, next((name for name in others if _peak(limits, name)), others[-1])


def _largest_side(limits: Ceilings, formats: tuple[str, ...]) -> int:
    known = [name for name in formats if _compute_s(limits, name, SIDES[-1])]
    if not known:
        return UNKNOWN_SIDE
    fitting = (side for side in SIDES if all((_compute_s(limits, name, side) or 0.0) <= LONGEST_S for name in known))
    return next(fitting, SIDES[-1])


def _compute_s(limits: Ceilings, format_name: str, side: int) -> float | None:
    """The compute floor of a square product; ``None`` without a peak."""
    square = Workload(GemmJob.name, format_name, items({"m": side, "n": side, "k": side}))
    compute_s, _ = floors_s(GemmJob().work(square), COLD, limits, Calibration())
    return compute_s


def _peak(limits: Ceilings, format_name: str) -> float | None:
    return limits.peak_flop_s(FORMATS[format_name].pipe)


def _side_of(elements: float) -> int:
    """The side of a square of at most so many elements."""
    return max(STEP, math.isqrt(int(elements)) // STEP * STEP)
