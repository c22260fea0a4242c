import random
from itertools import pairwise
from statistics import median

import pytest

from suite.measure.statistics import median_interval
from suite.measure.stopping import KNOWN_IN_CYCLES, LOOK_GROWTH, IntervalRule


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


def readings(count, center, spread, step, seed=4):
    """Durations between two readings of a clock that counts in steps."""
    draw, out = random.Random(seed), []
    for _ in range(count):
        phase = draw.random() * step
        out.append(step * ((phase + draw.gauss(center, spread)) // step))
    return out


def test_the_timer_resolution_is_the_floor_of_the_target():
    """With a target no timer can meet, a coarse timer must not keep a case sampling until its time is up."""
    patient = IntervalRule(1e-9, 20, 0.01, 0.5, resolution_s=1e-6)
    assert run(patient, readings(200_000, 10e-6, 0.5e-6, 1e-6)) < 5000
    assert patient.converged


def test_equal_readings_of_a_coarse_timer_are_known_to_half_a_step():
    rule = IntervalRule(0.005, 20, 0.01, 0.5, resolution_s=1e-6)
    run(rule, [10e-6] * 20_000)
    assert rule.converged
    assert rule.interval == pytest.approx((9.5e-6, 10.5e-6))


def test_steps_finer_than_the_target_do_not_excuse_noise():
    rule = IntervalRule(0.005, 20, 0.01, 0.5, resolution_s=1e-6)
    run(rule, readings(2000, 1e-3, 0.5e-3, 1e-6))
    assert not rule.converged


def test_what_a_coarse_timer_reads_differently_each_time_is_known_to_a_step_either_way():
    """A duration halfway between two steps reads as either: the interval holds both, and more sampling changes nothing."""
    rule = IntervalRule(0.005, 20, 0.01, 0.5, resolution_s=1e-6)
    run(rule, readings(200_000, 10.5e-6, 0.0, 1e-6))
    assert rule.converged
    assert rule.interval.low <= 10.5e-6 <= rule.interval.high
    assert rule.interval.high - rule.interval.low <= 2.0001e-6


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
    assert all(after >= 0.96 * LOOK_GROWTH * before for before, after in pairwise(spaced))


def test_what_did_not_converge_is_told_of_within_the_range_of_its_samples():
    """A slow change seen in part could go on beyond them; that is a reason to sample on, not a figure to report."""
    samples = [1.0 + 0.0002 * index for index in range(300)]
    rule = IntervalRule(0.005, 20, 0.1, 290, 1e-9)
    run(rule, samples)
    assert not rule.converged
    assert rule.interval.low >= samples[0] - 1e-9
    assert rule.interval.high <= samples[-1] + 1e-9
    assert median_interval(samples).low < samples[0]


@pytest.mark.parametrize(("count", "within"), [(5, False), (6, True), (13, True)])
def test_a_handful_of_long_samples_is_told_of_within_its_range(count, within):
    """Thirteen samples of 65 to 102 ms had an interval from 0 to 226 ms."""
    samples = [0.065, 0.102, 0.066, 0.099, 0.067, 0.070, 0.101, 0.066, 0.068, 0.090, 0.067, 0.100, 0.069][:count]
    rule = IntervalRule(0.005, 20, 0.1, sum(samples), 1e-9)
    run(rule, samples)
    assert not rule.converged
    assert (rule.interval.low >= min(samples) - 1e-9 and rule.interval.high <= max(samples) + 1e-9) is within


def capped(seconds, seed=6):
    """A product of 2.2 million cycles, at a clock that steps by 1.2 % every 80 ms or so: durations and cycles."""
    draw, clock = random.Random(seed), 1.34e9
    durations_s, cycles = [], []
    while len(durations_s) < seconds / 1.6e-3:
        if draw.random() < 0.02:
            clock = draw.choice([1.31e9, 1.325e9, 1.34e9, 1.355e9, 1.37e9])
        cycles.append(2.2e6 * draw.gauss(1.0, 0.001))
        durations_s.append(cycles[-1] / clock)
    return durations_s, cycles


def fed(rule, durations_s, cycles):
    position = 0
    while not rule.done():
        end = position + rule.next_count()
        rule.feed(durations_s[position:end], sum(durations_s[position:end]), cycles[position:end])
        position = end
    return sum(durations_s[:position])


def test_under_a_clock_that_steps_a_median_known_in_cycles_is_enough():
    durations_s, cycles = capped(12.0)
    counted, uncounted = (IntervalRule(0.005, 20, 0.1, 10.0, 1e-9) for _ in range(2))
    took_s, long_s = fed(counted, durations_s, cycles), fed(uncounted, durations_s, [])
    assert counted.converged
    assert KNOWN_IN_CYCLES * 0.1 <= took_s < 0.7 < long_s
    assert counted.interval_cycles.low <= 2.2e6 <= counted.interval_cycles.high
    assert counted.interval_cycles.relative_half_width(2.2e6) <= 0.005
    center = median(counted.samples)
    assert counted.interval.relative_half_width(center) > 0.005, "what is told of the time is no narrower than it was"
    assert uncounted.interval_cycles is None


def test_cycles_that_wander_do_not_end_what_the_time_does_not():
    durations_s, _ = capped(3.0)
    rule = IntervalRule(0.005, 20, 0.1, 2.0, 1e-9)
    assert fed(rule, durations_s, [duration * 1.3e9 for duration in durations_s]) == pytest.approx(2.0, rel=0.1)
    assert not rule.converged


def test_one_call_without_a_clock_leaves_the_time_alone():
    durations_s, cycles = capped(3.0)
    rule = IntervalRule(0.005, 20, 0.1, 2.0, 1e-9)
    rule.feed(durations_s[:1], durations_s[0], [])
    while not rule.done():
        start = len(rule.samples)
        end = start + rule.next_count()
        rule.feed(durations_s[start:end], sum(durations_s[start:end]), cycles[start:end])
    assert rule.interval_cycles is None
    assert not rule.converged
