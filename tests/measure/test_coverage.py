"""Does the 95 % interval that the stopping rule leaves hold the median, and what does it cost?

Made-up processes and recordings are replayed from 200 starting points, as the spine feeds the rule; the interval has to hold
the median in 180 to 198 of them.  ``tests/recordings/COVERAGE.md`` has the figures, and those of other constructions.
"""

from functools import cache
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from tests.measure.processes import (
    HELD_MORE,
    HIDDEN,
    PROMISED,
    SAMPLE_S,
    UNSEEN,
    correlated,
    square_wave,
    stepping,
    tape,
    white,
)
from tests.measure.replays import REPLAYS, Settings, Tally, Tape, held_around, replay, settings_for, tally, wander
from tests.recordings.recording import Recording, every_recording

LEAST, MOST = 0.90 * REPLAYS, 0.99 * REPLAYS
BRIEF = Settings(max_time_s=5.0)  # what does not converge in five seconds does not in ten
# Its neighbours alternate, and of the three ways to reckon an interval the widest counts: 0.036 % where 0.015 % would do.
HELD_TOO_OFTEN = {"cuda-bf16-512-warm": pytest.mark.xfail(strict=True, reason="held in 200 of 200 replays, not in at most 198")}
STEADY = 1 / 3  # of what is asked for: a recording whose seconds wander by more has no one median to hold
NVBENCH_S = 0.5  # of samples, by default, before its batch


@pytest.mark.parametrize("name", PROMISED)
def test_the_interval_holds_the_median_in_90_to_99_of_100_replays(name):
    assert LEAST <= tally(PROMISED[name](), BRIEF).covered <= MOST


@pytest.mark.parametrize("name", HELD_MORE)
def test_steps_and_regular_changes_are_held_no_less(name):
    got = tally(HELD_MORE[name]())
    assert got.covered >= LEAST
    assert got.converged == REPLAYS


@pytest.mark.parametrize("name", HIDDEN)
def test_a_wander_under_noise_is_held_once_a_quarter_of_a_second_shows_it(name):
    assert LEAST <= tally(HIDDEN[name](), Settings(min_time_s=0.25)).covered <= MOST


def test_a_step_of_the_timer_is_as_narrow_as_it_gets():
    coarse = HELD_MORE["steps of 1 %"]()
    got = tally(coarse, Settings(target=1e-6))
    assert got.converged == REPLAYS
    assert coarse.resolution_s / 2 <= got.half_width * coarse.truth <= coarse.resolution_s * 1.001


@pytest.mark.parametrize("name", ["clock of 10 s", "rho 0.999 under noise", "drift of 2 %"])
def test_what_is_slower_than_the_samples_is_not_promised(name):
    """An interval that held it would be far wider than what was seen, for every case."""
    got = tally(UNSEEN[name]())
    assert got.converged == REPLAYS
    assert got.covered < LEAST


def test_of_a_clock_that_changes_too_slowly_the_state_that_was_sampled_is_held():
    period = 5000
    slow = tape(lambda draw: square_wave(draw, period, step=0.01, spread=0.005), 1.005)
    starts = range(0, period * 20, period // 2)  # each at the beginning of a state
    held = [replay(slow, start, Settings()).held(SAMPLE_S * (1.0, 1.01)[index % 2]) for index, start in enumerate(starts)]
    assert sum(held) >= 0.9 * len(held)


def test_a_median_between_two_modes_is_held_and_called_not_converged():
    got = tally(UNSEEN["modes 50 to 50"](), Settings(max_time_s=1.0))
    assert got.covered >= LEAST
    assert got.converged <= REPLAYS / 5


def test_ordinary_noise_costs_at_most_half_of_what_nvbench_samples():
    """Spreads of up to 1 % and short memories, as of products on accelerators; at a target of 0.5 %."""
    ordinary = [
        *(tape(lambda draw, spread=spread: white(draw, spread)) for spread in (0.001, 0.003, 0.01)),
        *(tape(lambda draw, spread=spread: correlated(draw, 0.5, spread)) for spread in (0.001, 0.003, 0.01)),
    ]
    costs_s = [tally(each).wall_s for each in ordinary]
    assert median(costs_s) <= NVBENCH_S / 2
    assert max(costs_s) <= NVBENCH_S


def test_independent_noise_takes_at_most_three_times_the_samples_that_knowing_its_spread_would():
    spread, target = 0.02, 0.005
    needed = (1.96 * 1.2533 * spread / target) ** 2
    assert tally(tape(lambda draw: white(draw, spread)), Settings(target)).samples <= 3 * needed


def test_stopping_at_the_first_narrow_look_costs_little_coverage():
    """Against as many samples looked at once."""
    noisy = tape(lambda draw: white(draw, 0.02))
    once = Settings(target=1.0, min_time_s=0.5)
    assert tally(noisy, once).covered - tally(noisy).covered <= 0.03 * REPLAYS


# What lies between no memory and a long one is held in times alone (``PROMISED``), and a clock takes nothing from it.
@pytest.mark.parametrize(("rho", "spread"), [(0.0, 0.003), pytest.param(0.5, 0.003, marks=pytest.mark.thorough), (0.9, 0.002)])
def test_cycles_are_held_as_times_are_while_the_clock_steps(rho, spread):
    """A product at a limit of power: its cycles have ordinary noise, its times follow a clock that steps by 1.2 %."""
    plain = tape(lambda draw: correlated(draw, rho, spread))
    cycles = [1.3e9 * each for each in plain.durations_s]
    levels = stepping(np.random.default_rng(8))
    durations_s = [each / (1.3e9 * level) for each, level in zip(cycles, levels.tolist(), strict=True)]
    capped = plain._replace(durations_s=durations_s, cycles=cycles, truth_cycles=1.3e9 * plain.truth)
    got = tally(capped, BRIEF)
    assert LEAST <= got.covered_cycles <= MOST
    assert got.converged == REPLAYS
    assert got.wall_s <= 2 * NVBENCH_S
    assert tally(capped._replace(cycles=()), BRIEF, 40).converged < 40, "of the times alone some are never known"


@cache
def recording(path: Path) -> Tape:
    return Recording.read(path).tape()


@cache
def recounted(path: Path) -> Tally:
    """What the replays of a recording come to, with the settings for it."""
    return tally(recording(path), settings_for(recording(path)))


@pytest.mark.parametrize("path", [path for path in every_recording() if recording(path).cycles], ids=lambda path: path.stem)
def test_the_cycles_of_a_recording_are_held(path):
    assert recounted(path).covered_cycles >= LEAST


@pytest.mark.parametrize("path", every_recording(), ids=lambda path: path.stem)
def test_a_recording_is_held_whole_where_it_is_steady_and_around_what_was_sampled_where_not(path):
    if is_steady(path):
        assert recounted(path).covered >= LEAST
    else:
        assert held_around(recording(path), settings_for(recording(path))) >= LEAST


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=HELD_TOO_OFTEN.get(path.stem, ()), id=path.stem) for path in every_recording()],
)
def test_a_steady_recording_is_held_no_more_often_than_that_but_for_the_timers_step(path):
    if is_steady(path):
        got, recorded = recounted(path), recording(path)
        assert got.covered <= MOST or got.half_width * recorded.truth <= recorded.resolution_s


def test_recordings_of_a_processor_are_here_and_some_are_steady():
    assert any(is_steady(path) for path in every_recording() if path.stem.startswith("cpu-"))


@cache
def is_steady(path: Path) -> bool:
    """Whether its seconds agree much better than asked for, or than its timer tells."""
    recorded = recording(path)
    return wander(recorded) <= STEADY * max(settings_for(recorded).target, recorded.resolution_s / recorded.truth)
