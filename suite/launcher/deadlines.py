"""How long each phase of a case may take before its worker is killed."""

from suite.case import Regime
from suite.settings import MeasureSettings

MARGIN = 1.5  # windows and sampling end with the launch that is under way, and the host may be busy


def limit_s(phase: str, settings: MeasureSettings, regime: Regime | None = None) -> float:
    """Seconds that ``start``, ``compile``, ``verify`` or ``measure`` may take.

    Measuring adds to its deadline what the regime itself asks for: idle times and windows of a burst; settling and
    sampling of a sustained load.
    """
    allowed: float = getattr(settings.deadlines, f"{phase}_s")
    if phase != "measure" or regime is None:
        return allowed
    return allowed + MARGIN * _asked_for_s(settings, regime)


def _asked_for_s(settings: MeasureSettings, regime: Regime) -> float:
    if regime.load == "burst":
        idle_s = settings.burst_first_idle_s + (settings.burst_windows - 1) * settings.burst_idle_s
        return idle_s + settings.burst_windows * settings.burst_window_s
    return settings.steady_timeout_s + settings.steady_window_s + settings.max_time_s
