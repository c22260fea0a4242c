"""Tails of Student's t by the published table, and Benjamini and Hochberg's own example."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.compare.correction import benjamini_hochberg
from suite.compare.student import upper_tail

# NIST/SEMATECH e-Handbook, table 1.3.6.7.2: degrees, value, probability above it.
PUBLISHED = [
    (1, 6.314, 0.05), (1, 31.821, 0.01), (2, 2.920, 0.05), (3, 2.353, 0.05), (4, 2.132, 0.05), (7, 2.365, 0.025),
    (8, 2.306, 0.025), (8, 4.501, 0.001), (19, 2.093, 0.025), (24, 1.711, 0.05), (100, 3.174, 0.001),
    (1_000_000, 3.090, 0.001),
]  # fmt: skip


@pytest.mark.parametrize(("degrees", "value", "tail"), PUBLISHED)
def test_tails_are_those_of_the_published_table(degrees, value, tail):
    assert upper_tail(value, degrees) == pytest.approx(tail, rel=1.5e-3)


@given(st.floats(0, 50), st.integers(1, 1000))
def test_both_tails_and_what_is_between_make_one(value, degrees):
    assert upper_tail(value, degrees) + upper_tail(-value, degrees) == pytest.approx(1.0)


@pytest.mark.parametrize("value", [0.5, 1.0, 2.0, 4.0])
def test_more_degrees_are_a_shorter_tail_down_to_the_normals(value):
    tails = [upper_tail(value, degrees) for degrees in (*range(1, 30), 399, 400, 1000)]
    assert tails == sorted(tails, reverse=True)


def test_an_infinite_distance_is_never_passed_by_chance():
    assert (upper_tail(float("inf"), 5), upper_tail(float("-inf"), 5)) == (0.0, 1.0)


# Benjamini and Hochberg 1995, section 3.2: fifteen tests, of which four are rejected at 5 %.
THEIRS = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]


def test_their_own_example_rejects_the_first_four():
    adjusted = benjamini_hochberg(THEIRS)
    assert [p <= 0.05 for p in adjusted] == [True] * 4 + [False] * 11
    assert adjusted[:4] == pytest.approx([0.0015, 0.003, 0.0095, 0.035625])
    assert adjusted[4] == pytest.approx(0.0603)


@given(st.lists(st.floats(0, 1), max_size=40), st.randoms())
def test_order_does_not_matter_and_no_p_value_gets_smaller(p_values, draw):
    adjusted = benjamini_hochberg(p_values)
    order = draw.sample(range(len(p_values)), len(p_values))
    assert benjamini_hochberg([p_values[index] for index in order]) == [adjusted[index] for index in order]
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))


def test_of_one_case_nothing_is_corrected():
    assert benjamini_hochberg([0.04]) == [0.04]
    assert benjamini_hochberg([]) == []
