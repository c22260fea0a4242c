"""Readings of the device's counters, paired by multiprocessor."""

import numpy as np
import pytest

pytest.importorskip("triton")

from backends.triton import device_clock


def pair(before: list[list[int]], after: list[list[int]]) -> device_clock.Window | None:
    return device_clock.pair(np.array(before, dtype=np.int64), np.array(after, dtype=np.int64))


def test_clock_is_cycles_over_nanoseconds_of_the_same_multiprocessor() -> None:
    before = [[0, 1_000, 0], [1, 900_000, 10], [2, 5, 20]]
    after = [[2, 1_400_005, 1_000_020], [0, 1_401_000, 1_000_000], [1, 2_300_000, 1_000_010]]
    window = pair(before, after)
    assert window is not None
    assert window.hz == pytest.approx(1.4e9)
    assert window.spread == pytest.approx(0.0)
    assert window.seconds == pytest.approx(1e-3)


def test_a_multiprocessor_read_twice_spans_the_whole_window() -> None:
    before = [[7, 100, 100], [7, 200, 200]]
    after = [[7, 1_000_100, 1_000_100], [7, 2_000_100, 1_000_200]]
    window = pair(before, after)
    assert window is not None
    assert window.hz == pytest.approx((2_000_100 - 100) / (1_000_200 - 100) * 1e9)


def test_units_seen_on_one_side_only_give_no_clock() -> None:
    assert pair([[0, 1, 1]], [[1, 2, 2]]) is None
    assert pair([[0, 1, 1]], [[0, 1, 1]]) is None


def test_compute_units_of_different_dies_are_different_units() -> None:
    """AMD: a unit's number on its die, and 256 for each die before it; dies have clocks of their own."""
    before = [[3, 0, 0], [256 + 3, 0, 0], [512 + 3, 0, 0]]
    after = [[3, 2_100_000, 1_000_000], [256 + 3, 2_000_000, 1_000_000], [512 + 3, 2_107_000, 1_000_000]]
    window = pair(before, after)
    assert window is not None
    assert window.hz == pytest.approx(2.1e9)
    assert window.spread == pytest.approx(107 / 2100)
