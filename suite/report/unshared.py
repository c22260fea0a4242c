"""Why a result has no share of a ceiling: what would be divided by is not known, or is not what limits it."""

from suite.outcome import Bound
from suite.report.floors import Ground, uncounted
from suite.roofline import above_derived
from suite.rows import ResultRow, is_resolved


def unshared(row: ResultRow, ground: Ground) -> dict[str, str]:
    """Which share of a ceiling a timed result does not have, as a reader asks for it, and why."""
    if row.bound == Bound.CACHE:
        return {"no share": "its data stay in the last-level cache, whose bandwidth no sheet gives"}
    if why := uncounted(row):
        return {"no share": why}
    found = {}
    if row.fractions.spec is None:
        found["no share of spec"] = _no_spec(row, ground)
    elif row.fractions.at_clock is None and row.bound == Bound.COMPUTE:
        found["no share at clock"] = "the device's clock was not counted"
    if row.fractions.empirical is None:
        found["no empirical share"] = _no_empirical(row)
    return found


def _no_spec(row: ResultRow, ground: Ground) -> str:
    ceilings = ground.ceilings
    if ceilings.spec is None:
        return "no sheet describes this device"
    if row.flops and (peak := ceilings.peak_flop_s(row.pipe)) is None:
        return f"no {row.pipe or 'arithmetic'} peak is known for this device"
    if row.flops and (passed := above_derived(row.flop_s or 0.0, peak, ceilings)):
        return passed
    if row.bound == Bound.MEMORY and not ceilings.bandwidth_bytes_s:
        return "memory bounds it, and no sheet declares this device's bandwidth"
    return "no ceiling of the sheet applies to it"


def _no_empirical(row: ResultRow) -> str:
    low_s, high_s = row.interval_s or (None, None)
    if not is_resolved(low_s, high_s, row.p50_s or 0.0):
        return "its time is not resolved"
    what = "bandwidth" if row.bound == Bound.MEMORY or not row.flops else f"{row.load} rate in {row.pipe or 'its format'}"
    above = ", or it lies above that, contended" if row.contended else ""
    return f"no {what} of this device was measured alone and resolved{above}"
