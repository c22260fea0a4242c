"""Which tokens each program goes through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.triton.decode.plan import ITEM_NUMBERS, planned

LENGTHS = st.lists(st.integers(0, 5000), min_size=1, max_size=12)


@given(LENGTHS, st.sampled_from([16, 32, 64]), st.integers(1, 8), st.integers(1, 1200))
def test_every_token_is_in_one_split_and_splits_begin_at_blocks(lengths: list[int], block: int, heads: int, slots: int) -> None:
    plan = planned(lengths, block, heads, slots)
    for sequence, length in enumerate(lengths):
        items = sorted((each for each in plan.items if each.sequence == sequence), key=lambda each: each.split)
        assert [each.split for each in items] == list(range(items[0].splits))
        assert {(each.kv_len, each.splits) for each in items} == {(length, len(items))}
        assert [each.begin for each in items] == [0, *(each.end for each in items[:-1])]
        assert items[-1].end == length
        assert all(each.begin % block == 0 for each in items)
        assert all(each.begin < each.end for each in items) or length == 0
    assert plan.most_splits == max(each.splits for each in plan.items)


def test_what_runs_at_once_ends_together() -> None:
    """32 sequences of 8 heads on 132 units: as many programs as there is room for, and all of one length."""
    plan = planned([32768] * 32, 32, 8, 132 * 8)
    assert len(plan.items) * 8 == 1024
    assert {each.end - each.begin for each in plan.items} == {8192}


def test_one_long_sequence_is_spread_over_the_device() -> None:
    plan = planned([131072], 64, 8, 132 * 4)
    assert 50 <= plan.most_splits <= 66


def test_more_sequences_than_room_are_not_split() -> None:
    assert planned([4096] * 512, 64, 8, 132 * 4).most_splits <= 2


def test_the_longest_go_first() -> None:
    lengths = [100, 5000, 900, 40]
    sizes = [each.end - each.begin for each in planned(lengths, 32, 1, 4).items]
    assert sizes == sorted(sizes, reverse=True)


def test_the_same_part_of_several_sequences_stands_together() -> None:
    items = planned([4096] * 4, 32, 8, 132).items
    assert len(items) > 4
    assert [each.sequence for each in items[:4]] == [0, 1, 2, 3]
    assert len({each.split for each in items[:4]}) == 1


def test_a_kernel_reads_eight_numbers_an_item() -> None:
    numbers = planned([70, 3], 32, 1, 8).numbers
    assert all(len(row) == ITEM_NUMBERS for row in numbers)
    assert numbers[0][:6] == [0, 0, 70, 0, 1, 70]


@pytest.mark.parametrize("slots", [1, 7, 132])
def test_equal_inputs_give_equal_plans(slots: int) -> None:
    assert planned([300, 200, 4000], 32, 2, slots) == planned([300, 200, 4000], 32, 2, slots)
