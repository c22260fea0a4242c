"""Seconds on one axis, idle times cut short."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.report.timeaxis import GAPS_WIDTH, cells, time_axis

BURST = [(1.02 * index, 1.02 * index + 0.02) for index in range(5)]
TIMES = st.floats(0, 1e4)
SPANS = st.lists(st.tuples(TIMES, st.floats(0, 5)).map(lambda each: (each[0], each[0] + each[1])), max_size=30)


def test_nothing_taken_is_no_axis():
    assert time_axis([], []) is None


def test_windows_keep_their_scale_and_idle_times_become_short_and_equal():
    axis = time_axis(BURST, [])
    assert [(stretch.began_s, stretch.ended_s) for stretch in axis.stretches] == BURST
    widths = [stretch.right - stretch.left for stretch in axis.stretches]
    gaps = [right - left for left, right in axis.gaps]
    assert widths == pytest.approx([widths[0]] * 5)
    assert gaps == pytest.approx([gaps[0]] * 4)
    assert gaps[0] == pytest.approx(0.2 * widths[0])


def test_a_pause_that_is_short_beside_the_sampling_is_drawn_as_long_as_it_was():
    axis = time_axis([(0.0, 1.0), (1.1, 2.1)], [0.0, 2.2])
    assert len(axis.stretches) == 1
    assert axis.at(1.1) == pytest.approx(0.5)


def test_readings_alone_are_one_stretch_however_slowly_they_come():
    assert len(time_axis([], [0.0, 0.5, 1.0, 1.5]).stretches) == 1
    assert len(time_axis([], [0.0, 0.02, 0.04, 5.0, 5.02, 5.04]).stretches) == 2


def test_a_single_reading_lies_in_the_middle():
    assert time_axis([], [3.0]).at(3.0) == 0.5


def test_many_idle_times_leave_most_of_the_axis_to_what_was_taken():
    axis = time_axis([(float(index), index + 0.01) for index in range(300)], [])
    taken = sum(stretch.right - stretch.left for stretch in axis.stretches)
    assert taken > 1 / (1 + GAPS_WIDTH) - 1e-6


def test_each_window_is_marked_and_a_long_one_has_round_seconds():
    assert [tick.label for tick in time_axis(BURST, []).ticks()] == ["0", "1.02", "2.04", "3.06", "4.08"]
    long = time_axis([(0.003, 2.0)], [])
    assert [tick.label for tick in long.ticks()] == ["0", "0.5", "1", "1.5", "2"]
    assert [tick.first for tick in long.ticks()] == [True, False, False, False, False]


@given(SPANS, st.lists(TIMES, max_size=30))
def test_time_goes_on_from_left_to_right(spans, readings):
    axis = time_axis(spans, readings)
    if axis is None:
        return
    assert axis.stretches[0].left == 0.0
    assert axis.stretches[-1].right == pytest.approx(1.0)
    assert all(before.right <= after.left for before, after in pairwise(axis.stretches))
    times = sorted([*readings, *(end for span in spans for end in span)])
    places = [axis.at(time_s) for time_s in times]
    assert places == sorted(places)
    assert all(0 <= place <= 1 for place in places)


@given(SPANS, st.lists(TIMES, min_size=1, max_size=30), st.integers(20, 200))
def test_what_was_taken_falls_into_a_part_of_its_own_stretch(spans, readings, count):
    axis = time_axis(spans, readings)
    for time_s in readings:
        assert axis.cell(time_s, count) in cells(axis.stretches[axis.stretch_of(time_s)], count)
        assert 0 <= axis.cell(time_s, count) < count
