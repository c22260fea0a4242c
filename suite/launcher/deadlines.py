"""How long each phase of a case may take before its worker is killed."""

from suite.case import Regime
from suite.planned import PlannedCase
from suite.settings import MeasureSettings

MARGIN = 1.5  # windows and sampling end with the launch that is under way, and the host may be busy


def limit_s(phase: str, settings: MeasureSettings, planned: PlannedCase | None = None) -> float:
    """Seconds that ``start``, ``compile``, ``verify`` or ``measure`` may take.

    Verifying and measuring add what the plan predicts for the whole case, so that a launch of minutes is not taken for a
    hang.  Measuring also adds what the regime itself asks for: idle times and windows of a burst; settling and sampling
    of a sustained load.
    """
    allowed: float = getattr(settings.deadlines, f"{phase}_s")
    if planned is None or phase not in ("verify", "measure"):
        return allowed
    asked_for_s = _asked_for_s(settings, planned.case.regime) if phase == "measure" else 0.0
    return allowed + planned.predicted_s + MARGIN * asked_for_s


def _asked_for_s(settings: MeasureSettings, regime: Regime) -> float:
    if regime.load == "burst":
        idle_s = settings.burst_first_idle_s + (settings.burst_windows - 1) * settings.burst_idle_s
        return idle_s + settings.burst_windows * settings.burst_window_s
    return settings.steady_timeout_s + settings.steady_window_s + settings.max_time_s
