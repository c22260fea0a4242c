"""Readings and facts that carry their unit in the name or beside them, as people read them."""

from collections.abc import Sequence
from typing import Any

from suite.report.words import counted, duration, si

# Unit of a channel of telemetry: how it is written.
UNITS = {"Hz": "Hz", "bytes": "B", "bytes/s": "B/s", "W": "W", "J": "J"}
# What ends the name of a fact: the unit that it is written in, and what one of it is there.
ENDINGS = {"_bytes": ("B", 1.0), "_khz": ("Hz", 1e3), "_hz": ("Hz", 1.0), "_w": ("W", 1.0)}
MASK = "mask"


def reading(value: float, unit: str) -> str:
    """One reading of telemetry: ``14 MB/s``, ``452.7 ms``, ``0x4``, ``55 C``."""
    if unit == MASK:
        return f"{int(value):#x}"
    if unit == "s":
        return duration(value) if value else "0 s"
    if unit in UNITS and (abs(value) >= 1 or not value):
        return si(value, UNITS[unit])
    return f"{value:.6g} {UNITS.get(unit, unit)}".rstrip()


def readings(values: Sequence[float], unit: str) -> str:
    """A channel in a few words, from the least reading to the largest; of masks which there were."""
    low, high, number = min(values), max(values), counted(len(values), "reading")
    if unit == MASK:
        return f"{', '.join(reading(each, unit) for each in sorted(set(values)))} in {number}"
    if low == high:
        return f"{reading(low, unit)} in {'all ' if len(values) > 1 else ''}{number}"
    return f"{reading(low, unit)} to {reading(high, unit)} in {number}"


def tokens_rate(tokens_s: float) -> str:
    """Four digits and no prefix, as the field writes it: ``271.3 tokens/s``, ``12,350 tokens/s``."""
    rounded = float(f"{tokens_s:.4g}")
    return f"{rounded:,.0f} tokens/s" if rounded >= 1000 else f"{rounded:.4g} tokens/s"


def named_fact(name: str, value: Any) -> tuple[str, Any]:
    """A fact without its unit in the name and with it beside the number: ``total_bytes`` of 135148564480 is ``total``, 135 GB.

    A name without a unit stays as it is, and its number loses digits that say nothing; so does a value of several numbers.
    """
    ending = next((each for each in ENDINGS if name.endswith(each)), None)
    if isinstance(value, bool) or not isinstance(value, int | float | str | None):
        return name, value
    if ending is None:
        return name, f"{value:.4g}" if isinstance(value, float) else value
    unit, scale = ENDINGS[ending]
    return name.removesuffix(ending), si(value * scale, unit) if isinstance(value, int | float) else value
