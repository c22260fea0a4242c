import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.measure.statistics import batch_interval, cut, median, median_interval, quantile, t_95

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
