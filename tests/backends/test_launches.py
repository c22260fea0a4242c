"""How launches are grouped into samples."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.launches.plan import estimate_launch_s, plan_launches, plan_stays

LIMIT = 2048


@given(
    launch_s=st.floats(1e-7, 10.0),
    sample_s=st.floats(1e-4, 0.1),
    sets=st.integers(1, 5000),
)
def test_every_set_is_used_equally_often(launch_s: float, sample_s: float, sets: int) -> None:
    plan = plan_launches(launch_s, sample_s, sets, LIMIT)
    used = [set_index for sample in range(plan.period) for set_index in plan.order(sample)]
    assert sorted(used) == sorted(list(range(sets)) * (len(used) // sets))
    assert plan.launches <= max(LIMIT, sets)
    assert plan.order(plan.period) == plan.order(0)


@given(launch_s=st.floats(1e-6, 1e-3), sets=st.integers(1, 8))
def test_a_sample_lasts_about_as_long_as_asked(launch_s: float, sets: int) -> None:
    sample_s = 0.01
    plan = plan_launches(launch_s, sample_s, sets, limit=100_000)
    assert plan.launches * launch_s == pytest.approx(sample_s, rel=0.5)


def test_long_launches_are_samples_of_their_own_and_sets_take_turns() -> None:
    plan = plan_launches(0.05, 0.002, sets=2, limit=LIMIT)
    assert (plan.launches, plan.period) == (1, 2)
    assert [plan.order(sample) for sample in range(3)] == [[0], [1], [0]]


@pytest.mark.parametrize(
    ("launch_s", "sets", "launches", "period"),
    [
        (0.0008, 10, 2, 5),
        (0.0002, 16, 8, 2),
        (0.0005, 13, 4, 13),  # no part divides it: parts of four overlap, and repeat after thirteen
        (1e-6, 4096, 2048, 2),
        (1e-6, 4093, 4093, 1),  # overlapping parts would repeat after millions of launches
    ],
)
def test_a_rotation_too_long_for_a_sample_is_taken_in_parts(launch_s: float, sets: int, launches: int, period: int) -> None:
    """Sixteen copies of a product of 1 ms would make one sample of 16 ms, and a burst of 20 ms one sample."""
    plan = plan_launches(launch_s, 0.002, sets, LIMIT)
    assert (plan.launches, plan.period) == (launches, period)


@given(
    launch_s=st.floats(1e-7, 10.0),
    sample_s=st.floats(1e-4, 0.1),
    sets=st.integers(1, 64),
)
def test_those_that_stay_use_one_set_a_sample_and_every_set_in_a_period(launch_s: float, sample_s: float, sets: int) -> None:
    plan = plan_stays(launch_s, sample_s, sets, LIMIT)
    orders = [plan.order(sample) for sample in range(plan.period + 1)]
    assert [len(set(order)) for order in orders] == [1] * len(orders)
    assert [order[0] for order in orders] == [*range(sets), 0]
    assert 1 <= plan.launches <= LIMIT
    assert plan.launches == 1 or plan.launches * launch_s == pytest.approx(sample_s, rel=0.5) or plan.launches == LIMIT


def test_a_tiny_launch_is_not_sized_by_the_overhead_of_one() -> None:
    """A launch of 1 us behind an overhead of 20 us: the first trial says 21, the last one nearly 1."""
    asked = []

    def time_launches(count: int) -> float:
        asked.append(count)
        return 20e-6 + count * 1e-6

    estimate = estimate_launch_s(time_launches, sets=1, sample_s=0.002, limit=LIMIT)
    assert estimate == pytest.approx(1e-6, rel=0.15)
    assert len(asked) <= 6


@pytest.mark.parametrize(("launch_s", "trials"), [(0.3, [2]), (0.002, [2, 2])])
def test_a_long_launch_is_tried_once_and_one_that_may_have_been_held_up_twice(launch_s: float, trials: list[int]) -> None:
    asked = []

    def time_launches(count: int) -> float:
        asked.append(count)
        return count * launch_s

    assert estimate_launch_s(time_launches, sets=2, sample_s=0.002, limit=LIMIT) == pytest.approx(launch_s)
    assert asked == trials


def test_what_held_up_one_trial_is_not_taken_for_a_long_launch() -> None:
    """A launch of 15 us whose first trial was held up for 350: samples of 6 launches in place of 130, and 12,000 of them."""
    asked = []

    def time_launches(count: int) -> float:
        asked.append(count)
        return count * 15e-6 + (350e-6 if len(asked) == 1 else 0.0)

    assert estimate_launch_s(time_launches, sets=1, sample_s=0.002, limit=LIMIT) == pytest.approx(15e-6)
    assert asked[:2] == [1, 1]
    assert asked[-1] > 10


def test_trials_end_at_the_limit() -> None:
    assert estimate_launch_s(lambda count: 0.0, sets=3, sample_s=1.0, limit=50) == 0.0
