"""Figures as the findings say them."""

from collections.abc import Sequence

NAMED_AT_MOST = 3
UNITS_S = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def per_cent(ratio: float) -> str:
    """Two significant digits, whole percents from ten on: ``0.42 %``, ``4 %``, ``18 %``."""
    value = 100 * ratio
    return f"{value:.0f} %" if abs(value) >= 9.95 else f"{value:.2g} %"


def brief(seconds: float) -> str:
    """Three significant digits at most: ``50 ns``, ``1.13 µs``."""
    scale, unit = next(((scale, unit) for scale, unit in UNITS_S if seconds >= 0.9995 * scale), UNITS_S[-1])
    return f"{seconds / scale:.3g} {unit}"


def listed(names: Sequence[str]) -> str:
    """The first few names and how many more there are."""
    more = len(names) - NAMED_AT_MOST
    return ", ".join(names[:NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")


def counted(count: int, noun: str) -> str:
    """``1 case``, ``3 cases``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
