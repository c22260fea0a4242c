"""Which stored repeatability fits a result, and what it says of a ratio from run to run."""

import math

import pytest

from suite.compare.noise import NONE
from suite.compare.spread import Spread, fitting, spread_of
from suite.selftest.record import Repeatability
from tests.report.builders import UID, result

KNOWN = Repeatability(cycles_rel=0.004, bytes_rel=0.03, in_cycles=True, cases=20)
COMPUTE, MEMORY = result(), result(bound="memory")


@pytest.mark.parametrize(
    ("bound", "in_cycles", "expected"),
    [
        ("compute", True, 0.004),
        ("memory", False, 0.03),
        ("compute", False, 0.03),  # its time is not what repeated to 0.4 %
        ("launch", False, 0.03),
        ("cache", False, 0.03),
        (None, False, 0.03),
    ],
)
def test_the_figure_of_the_kind_that_fits_or_the_worse(bound, in_cycles, expected):
    assert fitting(KNOWN, bound, in_cycles) == expected


def test_without_a_counter_the_figure_of_arithmetic_is_of_time():
    assert fitting(Repeatability(0.02, 0.05, in_cycles=False, cases=9), "compute", False) == 0.02


def test_a_kind_that_the_selftest_lacked_is_replaced_by_the_other():
    assert fitting(Repeatability(None, 0.05, in_cycles=False, cases=9), "compute", True) == 0.05
    assert fitting(Repeatability(0.02, None, in_cycles=True, cases=9), "memory", False) == 0.02


def test_of_one_device_it_is_1_96_deviations_of_the_ratio():
    found = spread_of(MEMORY, MEMORY, False, {(UID, "cuda"): KNOWN})
    assert found.rel == 0.03
    assert found.noise == pytest.approx((math.log(1.03) / 1.96, math.log(1.03) / 1.96, 19))


def test_of_two_devices_each_gives_half_of_the_variance_and_the_larger_is_the_margin():
    other = result(device_uid="other")
    known = {(UID, "cuda"): KNOWN, ("other", "cuda"): Repeatability(0.003, 0.003, in_cycles=True, cases=5)}
    found = spread_of(COMPUTE, other, True, known)
    assert found.rel == 0.004
    assert found.noise.below == pytest.approx(math.sqrt((math.log(1.004) ** 2 + math.log(1.003) ** 2) / 2) / 1.96)
    assert found.noise.degrees == 4


def test_what_another_backend_repeats_to_says_nothing():
    assert spread_of(MEMORY, MEMORY, False, {(UID, "xla"): KNOWN}) == Spread(None, NONE)
