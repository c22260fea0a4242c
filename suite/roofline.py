"""Ceilings and every derived number, in one pure module.

The store keeps samples, work counts and telemetry; what is computed from them (rates, fractions, bound) is computed
here and nowhere else, and cached under ``FORMULAS_VERSION`` so that it can be rebuilt.
"""

from dataclasses import asdict, dataclass
from typing import Any

FORMULAS_VERSION = 1


@dataclass(frozen=True, slots=True)
class Summary:
    """Derived numbers of one timed result, in SI units for one launch; ``None`` where it cannot be known.

    ``fraction_*`` are achieved rate over min(peak, intensity x bandwidth) of that ceiling.  The empirical ceiling moves
    as results are added, so its fraction is computed when rows are read, not kept here.
    """

    formulas_version: int
    bound: str
    count: int
    p50_s: float
    p05_s: float
    p95_s: float
    min_s: float
    interval_low_s: float | None
    interval_high_s: float | None
    flop_s: float
    bytes_s: float
    fraction_spec: float | None
    fraction_boost: float | None
    fraction_at_clock: float | None
    clock_hz: float | None
    energy_j: float | None
    power_w: float | None
    throttle: str | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
