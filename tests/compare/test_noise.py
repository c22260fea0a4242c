"""The noise of a median: from batches where there are some, from the interval of one stretch where not."""

import math
from dataclasses import replace

import pytest

from suite.compare.noise import STRETCH_DEGREES, UNKNOWN, batches_of, noise_of, noise_of_cycles
from suite.measure.statistics import median_interval
from tests.compare.draws import sample_set


def rounds(*medians: float, each: int = 3) -> tuple[list[float], tuple[int, ...]]:
    """Rounds of equal samples."""
    return [value for value in medians for _ in range(each)], tuple(range(0, each * len(medians), each))


def test_batches_are_what_lies_between_boundaries():
    assert batches_of([1.0, 2.0, 3.0, 4.0, 5.0], (0, 2, 3)) == [[1.0, 2.0], [3.0], [4.0, 5.0]]


def test_a_batch_that_thinning_left_nothing_of_is_none():
    assert batches_of([1.0, 2.0, 3.0], (0, 2, 2, 3)) == [[1.0, 2.0], [3.0]]


def test_five_rounds_count_by_their_order_where_that_says_more_than_their_spread():
    """Of 0.98 to 1.02 the standard error of the mean is 0.0070711, times 1.2533 and by ratio 0.008950 downwards; by their order
    the quantiles 0.5 - 0.98 / sqrt(5) and 0.5 + 0.98 / sqrt(5), 0.982469 and 1.017531, are 1.96 errors away.
    """
    noise = noise_of(sample_set(*rounds(1.0, 1.01, 0.99, 1.02, 0.98)[:1], 0.0, rounds(1, 1, 1, 1, 1)[1]))
    assert noise.below == pytest.approx(math.log(1 / 0.982469) / 1.96, rel=1e-4) == pytest.approx(0.0090237, rel=1e-4)
    assert noise.above == pytest.approx(math.log(1.017531) / 1.96, rel=1e-4) == pytest.approx(0.0088669, rel=1e-4)
    assert noise.degrees == 4


def test_ten_rounds_with_one_apart_count_by_their_spread():
    """Nine at 1 and one at 1.3: the standard error of the mean is 0.03, t of nine degrees 2.262; by their order all are 1."""
    samples, starts = rounds(*[1.0] * 9, 1.3)
    noise = noise_of(sample_set(samples, 0.0, starts))
    assert noise.above == pytest.approx(math.log(1 + 2.262 * 0.03) / 2.262 * 1.2533, rel=1e-4)
    assert noise.below == pytest.approx(-math.log(1 - 2.262 * 0.03) / 2.262 * 1.2533, rel=1e-4)


def test_rounds_of_two_kinds_leave_open_which_of_them_the_median_is():
    samples, starts = rounds(*[1.0, 1.2] * 10)
    noise = noise_of(sample_set(samples, 0.0, starts))  # the median is 1.1, between them
    assert noise.above == pytest.approx(math.log(1.2 / 1.1) / 1.96, rel=1e-6)
    assert noise.below == pytest.approx(math.log(1.1 / 1.0) / 1.96, rel=1e-6)


def test_one_stretch_has_the_interval_of_its_median():
    samples = [1.0 + 0.01 * ((7 * index) % 10) for index in range(200)]
    low, high = median_interval(samples, 1e-3)
    noise = noise_of(sample_set(samples, 1e-3))
    assert noise.below == pytest.approx(math.log(1.045 / low) / 1.96)
    assert noise.above == pytest.approx(math.log(high / 1.045) / 1.96)
    assert noise.degrees == STRETCH_DEGREES == 8


def test_three_samples_are_known_to_two_degrees():
    """Their mean has a standard error of 0.01 / sqrt(3), their median 1.16 times that; t of two degrees is 4.303."""
    noise = noise_of(sample_set([0.99, 1.0, 1.01]))
    half = 1.16 * 4.303 * 0.01 / math.sqrt(3)
    assert noise.degrees == 2
    assert noise.above == pytest.approx(math.log(1 + half) / 4.303, rel=1e-3)


def test_of_one_sample_nothing_is_known():
    assert noise_of(sample_set([1.0])) == UNKNOWN


def test_an_interval_down_to_nothing_says_nothing():
    assert noise_of(sample_set([1.0, 0.001])) == UNKNOWN


def test_equal_samples_are_as_certain_as_the_timers_step():
    for starts in ((0,), (0, 20)):
        noise = noise_of(sample_set([1.0] * 40, 0.01, starts))
        assert 0.5 * 0.005 / 13 < noise.above < 0.005
    assert noise_of(sample_set([1.0] * 40)) == (0.0, 0.0, 8)


@pytest.mark.parametrize("starts", [(0,), tuple(range(0, 60, 6))])
def test_a_clock_that_steps_is_in_the_noise_of_times_and_not_in_that_of_cycles(starts):
    clocks_khz = [1_300_000 if index // 6 % 2 else 1_330_000 for index in range(60)]
    cycles = [2.2e6 * (1 + 1e-4 * (index * 7 % 5 - 2)) for index in range(60)]
    plain = sample_set([each / (1e3 * clock) for each, clock in zip(cycles, clocks_khz, strict=True)], 1e-9, starts)
    counted = replace(plain, clocks_khz=tuple(clocks_khz))
    assert noise_of_cycles(plain) is None
    assert noise_of(counted) == noise_of(plain)
    in_cycles = noise_of_cycles(counted)
    assert in_cycles is not None
    assert 0 < in_cycles.above < noise_of(plain).above / 5
    assert in_cycles.degrees == noise_of(plain).degrees
