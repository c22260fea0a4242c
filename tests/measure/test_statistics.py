import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.measure.statistics import Interval, batch_interval, cut, median, median_interval, quantile, t_95

finite = st.floats(min_value=1e-9, max_value=1e3, allow_nan=False)


@given(st.lists(finite, min_size=1, max_size=60))
def test_median_agrees_with_the_standard_library(values):
    assert median(values) == pytest.approx(statistics.median(values), rel=1e-12)


def test_an_even_count_has_a_middle_pair():
    assert median([4.0, 1.0, 3.0, 2.0]) == 2.5


@given(st.lists(finite, min_size=1, max_size=60))
def test_quantiles_are_ordered_and_inside_the_samples(values):
    low, high = quantile(values, 0.05), quantile(values, 0.95)
    assert min(values) <= low <= high <= max(values)
    assert quantile(values, 0.5) == pytest.approx(median(values), rel=1e-9)


def test_quantile_interpolates_between_order_statistics():
    assert quantile([10.0, 20.0, 30.0, 40.0], 0.25) == 17.5


@given(st.lists(finite, min_size=1, max_size=200), st.integers(1, 40))
def test_cutting_loses_and_repeats_nothing(values, count):
    pieces = cut(values, count)
    assert [value for piece in pieces for value in piece] == values
    lengths = [len(piece) for piece in pieces]
    assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize(("degrees", "expected"), [(1, 12.706), (9, 2.262), (30, 2.042), (39, 2.023), (120, 1.980)])
def test_student_quantiles_match_the_published_table(degrees, expected):
    assert t_95(degrees) == pytest.approx(expected, abs=1.5e-3)


def test_one_round_apart_widens_the_interval_of_rounds():
    calm = [[1.0, 1.01, 0.99]] * 5
    moved = [*calm[:4], [1.3, 1.31, 1.29]]
    narrow, wide = batch_interval(calm), batch_interval(moved)
    assert narrow.high - narrow.low < 1e-9 < wide.high - wide.low


def test_correlated_samples_get_a_wider_interval_than_the_same_samples_shuffled():
    draw = random.Random(7)
    value, walk = 0.0, []
    for _ in range(2000):
        value = 0.97 * value + draw.gauss(0, 1)
        walk.append(100 + value)
    shuffled = draw.sample(walk, len(walk))
    correlated, independent = median_interval(walk), median_interval(shuffled)
    assert correlated.high - correlated.low > 2 * (independent.high - independent.low)


@given(st.lists(finite, min_size=2, max_size=200))
def test_the_median_is_inside_its_interval(values):
    low, high = median_interval(values)
    assert low <= median(values) <= high


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=60))
def test_an_interval_is_in_the_unit_of_its_samples(values):
    low, high = median_interval(values, resolution=1)
    scaled = median_interval([4 * value for value in values], resolution=4)
    assert scaled == pytest.approx((4 * low, 4 * high))


def test_equal_samples_give_an_interval_of_one_step():
    assert median_interval([7.0] * 50, resolution=0.5) == (6.75, 7.25)
    assert batch_interval([[7.0] * 5] * 5, resolution=0.5) == (6.75, 7.25)


def test_a_median_between_two_modes_is_not_given_to_one_of_them():
    draw = random.Random(1)
    low, high = median_interval([draw.choice([1.0, 2.0]) + draw.gauss(0, 0.001) for _ in range(200)])
    assert low < 1.01 < 1.99 < high


def test_outliers_count_as_samples_and_not_by_their_size():
    draw = random.Random(2)
    samples = [draw.gauss(1, 0.01) for _ in range(300)]
    edge = quantile(samples, 0.95)
    late = [value * 1000 if value > edge else value for value in samples]
    assert median_interval(late) == median_interval(samples)


def test_a_slow_change_seen_in_part_widens_the_interval_beyond_the_samples():
    """Fifty samples on one way up tell of no bound above: the next fifty may go on."""
    low, high = median_interval([1 + 0.001 * index for index in range(50)])
    assert low < 1.0
    assert high > 1.049


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 20])
def test_a_handful_of_samples_covers_the_median_in_95_of_100(count):
    draw = random.Random(3)
    intervals = [median_interval([draw.gauss(0, 1) for _ in range(count)]) for _ in range(1000)]
    assert sum(low <= 0 <= high for low, high in intervals) >= 930


@pytest.mark.parametrize("count", [2, 5, 10])
def test_rounds_that_differ_from_each_other_cover_the_median_they_scatter_around(count):
    draw = random.Random(4)

    def rounds():
        return [[level + draw.gauss(0, 0.5) for _ in range(9)] for level in (draw.gauss(0, 1) for _ in range(count))]

    intervals = [batch_interval(rounds()) for _ in range(400)]
    assert 360 <= sum(low <= 0 <= high for low, high in intervals) <= 396


def test_the_interval_of_a_launch_is_that_of_a_sample_over_its_launches():
    assert Interval(2.0, 4.0).per_launch(4) == (0.5, 1.0)
