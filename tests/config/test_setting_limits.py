"""Every number of ``measure`` has limits, and none of them may be infinite."""

import math
from dataclasses import fields
from typing import Any

import pytest

from suite.errors import UsageError
from suite.settings import DEADLINE_LIMITS, LIMITS, DeadlineSettings, Limits, MeasureSettings

LIMITED = [*LIMITS.items(), *DEADLINE_LIMITS.items()]


def settings(name: str, value: Any) -> MeasureSettings:
    made = MeasureSettings()
    setattr(made if name in LIMITS else made.deadlines, name, value)
    return made


def test_no_number_is_without_limits() -> None:
    numbers = {each.name for each in fields(MeasureSettings) if each.type in (int, float)}
    assert numbers == set(LIMITS)
    assert {each.name for each in fields(DeadlineSettings)} == set(DEADLINE_LIMITS)


@pytest.mark.parametrize(("name", "limits"), LIMITED)
def test_what_is_outside_is_refused_with_the_limits(name: str, limits: Limits) -> None:
    where = f"measure.{name}" if name in LIMITS else f"measure.deadlines.{name}"
    for value in (limits.least - 1, limits.most + 1):
        with pytest.raises(UsageError) as refused:
            settings(name, value).check()
        assert str(refused.value) == f"{where}={value} is not between {limits.least:.15g} and {limits.most:.15g}"


@pytest.mark.parametrize(("name", "value"), [("steady_tolerance", 1.0), ("steady_tolerance", 0.2), ("steady_window_s", 1e-6)])
def test_what_would_call_any_load_steady_is_refused(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=rf"measure.{name}={value} is not between "):
        settings(name, value).check()


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("name", [name for name, _ in LIMITED])
def test_what_is_not_finite_is_refused(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=rf"{name}={value} is not finite; choose from "):
        settings(name, value).check()


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("verify_tiles", 1, 4096), ("interleave", 1, 1000), ("burst_windows", 1, 1000), ("sample_s", 1e-6, 10)],
)
def test_the_limits_themselves_are_taken(name: str, least: float, most: float) -> None:
    settings(name, least).check()
    settings(name, most).check()
