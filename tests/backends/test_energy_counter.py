"""Joules of a window from a counter that moves in steps."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.telemetry.energy import EnergyMeter, EnergyTrace, Reading, joules_at, moves
from tests.backends.windows import Script, Ticking

STEP_S, PERIOD_S = 0.1, 0.02


def stepping(used_j: Callable[[float], float], clock: Ticking, phase_s: float, step_s: float = STEP_S) -> Callable[[], float]:
    """A counter that says what was used up to its last move."""

    def read_j() -> float:
        moved_s = (clock.now_s - phase_s) // step_s * step_s + phase_s
        return 1e6 + used_j(moved_s)

    return read_j


def measured_j(
    used_j: Callable[[float], float], window_s: float, phase_s: float, draw: random.Random, step_s: float = STEP_S
) -> float:
    """Joules of a window from 0, polled every 20 ms or a little later, as a thread is that waits for its turn."""
    clock = Ticking()
    trace = EnergyTrace(EnergyMeter(stepping(used_j, clock, phase_s, step_s), 0.0, step_s), clock_s=clock)
    due_s = 0.0
    while clock.now_s < window_s:
        trace.take()
        due_s += PERIOD_S
        clock.now_s = due_s + draw.uniform(0, 0.005)
    clock.now_s = max(clock.now_s, window_s)
    trace.close()
    energy = trace.channel(window_s)
    assert energy.times_s == (0.0, window_s)
    return energy.values[-1] - energy.values[0]


@given(phase_s=st.floats(0, STEP_S), seed=st.integers(0, 1000), watts=st.sampled_from([90.0, 691.0]))
def test_two_seconds_are_good_to_about_a_percent(phase_s: float, seed: int, watts: float) -> None:
    found_j = measured_j(lambda at_s: watts * at_s, 2.0, phase_s, random.Random(seed))
    assert found_j == pytest.approx(2.0 * watts, rel=0.015)  # at worst: 12.5 ms off at each end, and the lines beyond them


def test_the_error_is_a_fifth_of_that_of_the_bare_counter() -> None:
    draw = random.Random(1)
    phases = [draw.uniform(0, STEP_S) for _ in range(200)]
    window_s = 2.03
    found = [abs(measured_j(lambda at_s: 700 * at_s, window_s, phase, draw) / 700 / window_s - 1) for phase in phases]
    bare = [abs(((window_s - phase) // STEP_S - -phase // STEP_S) * STEP_S / window_s - 1) for phase in phases]
    assert sum(found) < sum(bare) / 5
    assert max(bare) > 0.03


@pytest.mark.parametrize("window_s", [2.0, 10.0])
def test_power_that_falls_over_the_window_is_followed(window_s: float) -> None:
    """From 800 W to 700 W, as a chip does that comes to its limit."""
    draw = random.Random(2)

    def used_j(at_s: float) -> float:
        return 700 * at_s + 100 * min(at_s, window_s / 2)

    for phase_s in (0.0, 0.03, 0.09):
        assert measured_j(used_j, window_s, phase_s, draw) == pytest.approx(used_j(window_s), rel=0.012)


def test_a_counter_as_fine_as_rapl_is_taken_at_its_readings() -> None:
    draw = random.Random(3)
    assert measured_j(lambda at_s: 150 * at_s, 0.2, 0.0004, draw, step_s=0.001) == pytest.approx(30.0, rel=0.006)


def test_a_move_lies_between_the_last_old_and_the_first_new_reading() -> None:
    readings = [Reading(0.0, 5.0), Reading(0.02, 5.0), Reading(0.04, 6.0), Reading(0.06, 6.0), Reading(0.14, 6.0)]
    more = [Reading(0.16, 7.0), Reading(0.46, 9.0), Reading(0.48, 10.0)]
    found = moves([*readings, *more], STEP_S)
    # Before the first reading and in the gap of 0.3 s a whole step is possible: too wide to count.
    assert [move.joules for move in found] == [6.0, 7.0, 10.0]
    assert [move.at_s for move in found] == pytest.approx([0.03, 0.15, 0.47])
    assert joules_at(found, 0.31) == pytest.approx(8.5)


def trace_of(*joules: float, wrap_j: float | None = None, window_s: float = 3.0) -> EnergyTrace:
    clock = Ticking(step_s=0.05)
    trace = EnergyTrace(EnergyMeter(Script(*joules), 2.0, STEP_S, wrap_j), clock_s=clock)
    for _ in joules:
        trace.take()
    return trace


def test_a_counter_that_does_not_move_is_no_device_that_uses_nothing() -> None:
    """As on MI100 and MI210 with some releases of AMD's library."""
    assert trace_of(8_152_136.0, 8_152_136.0, 8_152_136.0).channel(3.0).unavailable == (
        "the energy counter did not move in the window of 3 s"
    )


def test_a_counter_that_goes_backward_is_lost() -> None:
    """ROCm/amdsmi#115."""
    assert "fell" in trace_of(4_750.0, 4_736.0, 4_800.0).channel(3.0).unavailable


def test_a_counter_that_wraps_goes_on() -> None:
    energy = trace_of(*(float((90 + value) % 100) for value in range(40)), wrap_j=100.0).channel(3.9)
    assert energy.values[1] == pytest.approx(39.0, rel=0.05)


def test_a_short_window_says_what_it_would_take() -> None:
    assert trace_of(1.0, 2.0, 3.0).channel(0.7).unavailable == (
        "the window of 0.7 s is under the 2 s that the counter's steps need"
    )
