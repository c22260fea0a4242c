import random
from itertools import pairwise
from statistics import median

import pytest

from suite.measure.stopping import IntervalRule


def run(rule, recording, start=0):
    """Feed a recording of seconds until the rule is done; return how many samples it took."""
    position = start
    while not rule.done():
        count = rule.next_count()
        chunk = recording[position : position + count]
        assert chunk, "the recording is too short for this test"
        position += count
        rule.feed(chunk, sum(chunk))
    return position - start


def correlated(rho, count, seed):
    draw, value, out = random.Random(seed), 0.0, []
    for _ in range(count):
        value = rho * value + (1 - rho * rho) ** 0.5 * draw.gauss(0, 1)
        out.append(1e-3 * (1 + 0.02 * value))
    return out


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_over_200_replays_the_interval_covers_the_median_in_90_to_99_percent(rho):
    recording = correlated(rho, 60_000, seed=11)
    truth, draw, covered = median(recording), random.Random(5), 0
    for _ in range(200):
        rule = IntervalRule(target=0.005, min_samples=20, min_time_s=0.1, max_time_s=10, resolution_s=1e-9)
        run(rule, recording, start=draw.randrange(45_000))
        covered += rule.interval.low <= truth <= rule.interval.high
    assert 180 <= covered <= 198


def test_quiet_samples_stop_at_the_minimum_time():
    rule = IntervalRule(0.005, 20, 0.1, 10, 1e-9)
    assert 100 <= run(rule, correlated(0, 1000, 3)[:1] * 1000) <= 110


def test_noise_that_never_narrows_stops_at_the_maximum_and_says_so():
    draw = random.Random(2)
    recording = [1e-3 * draw.choice([1.0, 3.0]) for _ in range(4000)]
    rule = IntervalRule(0.0005, 20, 0.1, 2.0, 1e-9)
    run(rule, recording)
    assert not rule.converged
    assert rule.interval.high > rule.interval.low


def test_the_timer_resolution_is_the_floor_of_the_target():
    """With a target no timer can meet, a coarse timer must not keep a case sampling until its time is up."""
    draw = random.Random(4)
    recording = [1e-6 * draw.choice([9, 10, 10, 11]) for _ in range(200_000)]
    patient = IntervalRule(1e-9, 20, 0.01, 0.5, resolution_s=1e-6)
    assert run(patient, recording) < 5000
    assert patient.converged


def test_a_sample_longer_than_the_time_allowed_ends_after_it():
    rule = IntervalRule(0.005, 20, 0.1, 10, 1e-9)
    assert run(rule, [30.0] * 5) == 1
    assert rule.interval is None
    assert not rule.converged


def test_looks_are_geometrically_spaced():
    recording, looks = correlated(0.9, 60_000, 9), []
    rule = IntervalRule(0.0015, 20, 0.02, 50, 1e-9)
    position = 0
    while not rule.done():
        count = rule.next_count()
        rule.feed(recording[position : position + count], sum(recording[position : position + count]))
        position += count
        looks.append(position)
    spaced = looks[2:]
    assert len(spaced) > 3
    assert all(after >= 1.45 * before for before, after in pairwise(spaced))
