"""Sums in place go on as long as their numbers are the format's, and no launch longer."""

from fractions import Fraction

import numpy as np
import pytest

from suite.collectives.data import Inputs, largest_drawn
from suite.collectives.growth import launches_in_range
from suite.collectives.message import message
from suite.collectives.names import Op
from suite.collectives.number_format import NUMBER_FORMATS, number_format
from suite.collectives.part import Part


@pytest.mark.parametrize("ranks", [2, 8, 200])
@pytest.mark.parametrize("fmt", NUMBER_FORMATS)
def test_nothing_drawn_is_larger_than_is_said(fmt: str, ranks: int) -> None:
    given = message(Op.ALL_REDUCE, fmt, ranks, 50_000 * number_format(fmt).itemsize)
    drawn = np.abs(Inputs(given, "random", 5).sent(0, Part(0, 50_000))).max()
    assert 0.4 * largest_drawn(given) <= drawn <= largest_drawn(given)


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("fmt", NUMBER_FORMATS)
def test_the_largest_number_on_all_ranks_stays_in_the_format_until_the_next_launch(fmt: str, ranks: int) -> None:
    given, limit = message(Op.ALL_REDUCE, fmt, ranks, 4096), Fraction(number_format(fmt).largest)
    launches = launches_in_range(given, in_place=True)
    assert launches is not None
    reached = [Fraction(largest_drawn(given)) * ranks**count for count in (launches, launches + 1)]
    assert reached[0] < limit <= reached[1]


def test_half_precision_over_two_ranks_holds_thirteen_launches_and_none_is_below_one() -> None:
    assert launches_in_range(message(Op.ALL_REDUCE, "fp16", 2, 4096), in_place=True) == 13
    assert launches_in_range(message(Op.REDUCE_SCATTER, "int8", 2, 4096), in_place=True) == 1
    assert launches_in_range(message(Op.ALL_REDUCE, "fp8_e4m3", 256, 4096), in_place=True) == 1


@pytest.mark.parametrize("op", [Op.ALL_GATHER, Op.BROADCAST, Op.ALL_TO_ALL])
def test_what_is_only_moved_does_not_grow(op: Op) -> None:
    assert launches_in_range(message(op, "fp16", 2, 4096), in_place=True) is None


def test_a_sum_beside_its_data_does_not_grow() -> None:
    assert launches_in_range(message(Op.REDUCE_SCATTER, "fp16", 2, 4096), in_place=False) is None
