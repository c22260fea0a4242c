"""Figures as the findings say them: rounder than ``suite.report.words`` has them in tables, for they stand in sentences."""

from suite.report.words import TIMES


def per_cent(ratio: float) -> str:
    """Two significant digits, whole percents from ten on: ``0.42 %``, ``4 %``, ``18 %``."""
    value = 100 * ratio
    return f"{value:.0f} %" if abs(value) >= 9.95 else f"{value:.2g} %"


def brief(seconds: float) -> str:
    """Three significant digits at most: ``50 ns``, ``1.13 µs``."""
    scale, unit = next(((scale, unit) for scale, unit in TIMES if seconds >= 0.9995 * scale), TIMES[-1])
    return f"{seconds / scale:.3g} {unit}"
