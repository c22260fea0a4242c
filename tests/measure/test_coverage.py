"""Does the 95 % interval that the stopping rule leaves hold the median, and what does it cost?

Every made-up process and every recording is replayed from 200 starting points, as the spine feeds the rule; the interval has
to hold the median in 180 to 198 of them.
"""

from statistics import median

import pytest

from tests.measure.processes import HELD_MORE, HIDDEN, PROMISED, SAMPLE_S, UNSEEN, correlated, square_wave, tape, white
from tests.measure.replays import REPLAYS, Settings, Tape, replay, replays
from tests.recordings.recording import Recording, every_recording

LEAST, MOST = 0.90 * REPLAYS, 0.99 * REPLAYS
BRIEF = Settings(max_time_s=5.0)  # what does not converge in five seconds does not in ten
NVBENCH_S = 0.5  # of samples, by default, before its batch


@pytest.mark.parametrize("name", PROMISED)
def test_the_interval_holds_the_median_in_90_to_99_of_100_replays(name):
    assert LEAST <= replays(PROMISED[name](), BRIEF).covered <= MOST


@pytest.mark.parametrize("name", HELD_MORE)
def test_steps_and_regular_changes_are_held_no_less(name):
    tally = replays(HELD_MORE[name]())
    assert tally.covered >= LEAST
    assert tally.converged == REPLAYS


@pytest.mark.parametrize("name", HIDDEN)
def test_a_wander_under_noise_is_held_once_a_quarter_of_a_second_shows_it(name):
    assert LEAST <= replays(HIDDEN[name](), Settings(min_time_s=0.25)).covered <= MOST


def test_a_step_of_the_timer_is_as_narrow_as_it_gets():
    coarse = HELD_MORE["steps of 1 %"]()
    tally = replays(coarse, Settings(target=1e-6))
    assert tally.converged == REPLAYS
    assert coarse.resolution_s / 2 <= tally.half_width * coarse.truth <= coarse.resolution_s * 1.001


@pytest.mark.parametrize("name", ["clock of 10 s", "rho 0.999 under noise", "drift of 2 %"])
def test_what_is_slower_than_the_samples_is_not_promised(name):
    """Were this to fail, the interval would have become far wider than what it saw: the documents promise no such thing."""
    tally = replays(UNSEEN[name]())
    assert tally.converged == REPLAYS
    assert tally.covered < LEAST


def test_of_a_clock_that_changes_too_slowly_the_state_that_was_sampled_is_held():
    period = 5000
    slow = tape(lambda draw: square_wave(draw, period, step=0.01, spread=0.005), 1.005)
    starts = range(0, period * 20, period // 2)  # each at the beginning of a state
    rules = [replay(slow, start, Settings()) for start in starts]
    states = [SAMPLE_S * (1.0, 1.01)[index % 2] for index in range(len(rules))]
    held = sum(rule.interval.low <= state <= rule.interval.high for rule, state in zip(rules, states, strict=True))
    assert held >= 0.9 * len(rules)


def test_a_median_between_two_modes_is_held_and_called_not_converged():
    tally = replays(UNSEEN["modes 50 to 50"](), Settings(max_time_s=1.0))
    assert tally.covered >= LEAST
    assert tally.converged <= REPLAYS / 5


def test_ordinary_noise_costs_at_most_half_of_what_nvbench_samples():
    """Spreads of up to 1 % and short memories, as of products on accelerators; at a target of 0.5 %."""
    ordinary = [
        *(tape(lambda draw, spread=spread: white(draw, spread)) for spread in (0.001, 0.003, 0.01)),
        *(tape(lambda draw, spread=spread: correlated(draw, 0.5, spread)) for spread in (0.001, 0.003, 0.01)),
    ]
    costs_s = [replays(each).wall_s for each in ordinary]
    assert median(costs_s) <= NVBENCH_S / 2
    assert max(costs_s) <= NVBENCH_S


def test_independent_noise_takes_at_most_three_times_the_samples_that_knowing_its_spread_would():
    spread, target = 0.02, 0.005
    needed = (1.96 * 1.2533 * spread / target) ** 2
    assert replays(tape(lambda draw: white(draw, spread)), Settings(target)).samples <= 3 * needed


def test_looking_at_growing_counts_costs_little_coverage():
    """The same samples looked at once and until narrow enough: what stopping at a lucky look takes off."""
    noisy = tape(lambda draw: white(draw, 0.02))
    once = Settings(target=1.0, min_time_s=0.5)
    assert replays(noisy, once).covered - replays(noisy).covered <= 0.03 * REPLAYS


@pytest.mark.parametrize("path", every_recording(), ids=lambda path: path.stem)
def test_recordings_are_held_in_90_to_99_of_100_replays(path):
    recorded = Recording.read(path).tape()
    tally = replays(recorded, _settings(recorded))
    assert tally.covered >= LEAST
    if tally.half_width * recorded.truth > recorded.resolution_s:
        assert tally.covered <= MOST


def _settings(recorded: Tape) -> Settings:
    """Those of a run; a recording of short samples, which is over soon, has its least and most time scaled down with it."""
    lasts_s = len(recorded.durations_s) * (recorded.wall_s or 0.0)
    return Settings(min_time_s=min(0.1, lasts_s / 50), max_time_s=min(10.0, lasts_s / 4))
