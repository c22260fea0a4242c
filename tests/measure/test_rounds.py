"""When a round of an alternating measurement ends."""

from suite.measure.rounds import RoundRule


def run(rule: RoundRule, own_s: float, wall_s: float) -> tuple[int, int]:
    """Samples and calls until the rule is done, each sample lasting ``own_s`` and costing ``wall_s``."""
    count = calls = 0
    while not rule.done():
        taken = rule.next_count()
        rule.feed([own_s] * taken, wall_s * taken)
        count, calls = count + taken, calls + 1
        assert calls < 100
    return count, calls


def test_a_round_lasts_its_least_time_by_its_own_durations_whatever_flushes_cost():
    assert run(RoundRule(0.1, 0.0, 10.0), 0.001, 0.001) == run(RoundRule(0.1, 0.0, 10.0), 0.001, 0.02) == (100, 2)


def test_a_round_of_long_samples_has_three():
    assert run(RoundRule(0.1, 0.0, 1.0), 5.0, 5.0) == (3, 1)


def test_a_first_call_slower_than_the_rest_leaves_no_round_short():
    rule = RoundRule(0.1, 0.0, 10.0)
    rule.feed([0.01] * rule.next_count(), 0.03)
    total_s = 0.03
    while not rule.done():
        count = rule.next_count()
        rule.feed([0.001] * count, 0.001 * count)
        total_s += 0.001 * count
    assert 0.1 <= total_s < 0.12


def test_a_window_for_the_energy_counter_counts_by_the_clock():
    count, _ = run(RoundRule(0.1, 2.1, 10.0), 0.001, 0.003)
    assert 2.1 <= count * 0.003 < 2.11


def test_samples_that_cost_far_more_than_they_last_end_at_the_most_that_is_allowed():
    count, _ = run(RoundRule(0.5, 0.0, 10.0), 20e-6, 0.01)
    assert 10.0 <= count * 0.01 < 10.1


def test_a_sampler_that_says_no_time_passes_ends_too():
    count, _ = run(RoundRule(0.1, 0.0, 1.0), 0.0, 0.01)
    assert 1.0 <= count * 0.01 < 1.1
