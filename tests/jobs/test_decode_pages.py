"""Lengths, page tables and bytes of decoding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.errors import UsageError
from suite.jobs.decode.cache import Heads, cache_bytes, compulsory_bytes, flops, separate_bytes
from suite.jobs.decode.lengths import DISTRIBUTIONS, HIGHEST, LOWEST, lengths
from suite.jobs.decode.pages import paged

LLAMA = Heads(32, 8, 128)
MLA = Heads(128, 1, 512, tail=64, shared_values=True)
BATCHES = st.integers(1, 40)
SEQUENCES = st.lists(st.integers(1, 700), min_size=1, max_size=9)


@given(BATCHES, st.integers(1, 5000), st.sampled_from(list(DISTRIBUTIONS)), st.integers(0, 9))
def test_every_distribution_has_the_same_tokens_in_all(batch, mean, distribution, seed):
    found = lengths(batch, mean, distribution, seed)
    assert len(found) == batch
    assert sum(found) == batch * mean
    assert min(found) >= 1
    assert found == lengths(batch, mean, distribution, seed)


def test_lengths_are_spread_as_their_distribution_says():
    equal, uniform, skewed = (np.array(lengths(2000, 4096, name)) for name in ("equal", "uniform", "skewed"))
    assert np.unique(equal).tolist() == [4096]
    assert uniform.min() >= 0.9 * LOWEST * 4096
    assert uniform.max() <= 1.1 * HIGHEST * 4096
    assert np.std(np.log(skewed)) == pytest.approx(0.8, rel=0.1)
    assert np.median(skewed) < 0.85 * 4096


@pytest.mark.parametrize(
    ("arguments", "named"), [((4, 100, "ragged"), "ragged"), ((0, 100), "batch=0"), ((3, 0), "length of 0")]
)
def test_lengths_that_cannot_be_are_refused(arguments, named):
    with pytest.raises(UsageError, match=named):
        lengths(*arguments)


@given(SEQUENCES, st.sampled_from([1, 2, 16, 64]), st.sampled_from(["random", "contiguous"]))
def test_every_page_is_named_once_and_none_is_left(sequences, page_size, order):
    pages = paged(sequences, page_size, order=order)
    named = [row[: -(-length // page_size)].tolist() for row, length in zip(pages.table, sequences, strict=True)]
    assert sorted(page for each in named for page in each) == list(range(pages.page_count))
    assert pages.entries == pages.page_count
    assert pages.table.dtype == np.int32


def test_random_pages_are_in_no_order_and_contiguous_ones_are():
    assert paged([1600], 16, order="contiguous").table[0].tolist() == list(range(100))
    drawn = paged([1600], 16).table[0]
    assert np.mean(np.diff(drawn) == 1) < 0.1
    assert drawn.tolist() == paged([1600], 16).table[0].tolist()
    assert drawn.tolist() != paged([1600], 16, seed=1).table[0].tolist()


def test_a_prefix_is_the_same_pages_in_every_table_and_nothing_else_is_shared():
    pages = paged([100, 70, 64], 16, shared_tokens=48)
    assert (pages.table[:, :3] == pages.table[0, :3]).all()
    own = [row[3 : -(-length // 16)].tolist() for row, length in zip(pages.table, pages.lengths, strict=True)]
    assert sorted([*pages.table[0, :3].tolist(), *(page for each in own for page in each)]) == list(range(pages.page_count))
    assert pages.page_count == 3 + 4 + 2 + 1
    assert pages.unique_tokens == 48 + 52 + 22 + 16


@pytest.mark.parametrize(
    ("sequences", "page_size", "more", "named"),
    [
        ([100, 70], 16, {"shared_tokens": 40}, "whole pages of 16"),
        ([100, 70], 16, {"shared_tokens": 80}, "at most 64"),
        ([100, 0], 16, {}, "at least 1 token"),
        ([], 16, {}, "at least 1 token"),
        ([5], 16, {"order": "sorted"}, "sorted"),
    ],
)
def test_tables_that_cannot_be_are_refused(sequences, page_size, more, named):
    with pytest.raises(UsageError, match=named):
        paged(sequences, page_size, **more)


def test_a_batch_of_thousands_is_refused_in_a_line():
    with pytest.raises(UsageError) as raised:
        paged([7] * 4095 + [0], 16)
    assert "4096 sequences" in str(raised.value)
    assert "shortest" in str(raised.value)
    assert len(str(raised.value)) < 200


def test_waste_is_what_last_pages_have_left():
    assert paged([64, 32], 16).wasted == 0.0
    assert paged([65, 1], 16).wasted == pytest.approx(1 - 66 / 96)
    assert paged([65, 1], 1).wasted == 0.0
    assert paged([65, 40], 16, shared_tokens=32).wasted == pytest.approx(1 - 73 / 96)


def test_bytes_are_those_of_a_step_by_hand():
    pages = paged([4096] * 32, 16)
    found = compulsory_bytes(LLAMA, pages, "bf16", "none", 1)
    assert found.kv == 32 * 4096 * 8 * 256 * 2
    assert found.scales == 0
    assert found.table == 32 * 256 * 4 + 32 * 4
    assert found.queries == found.output == 32 * 32 * 128 * 2
    assert found.total == sum(found)


def test_scales_are_of_each_token_and_head_or_of_each_tensor():
    pages = paged([100, 50], 16)
    assert compulsory_bytes(LLAMA, pages, "int8", "token", 1).scales == 150 * 8 * 2 * 4
    assert compulsory_bytes(LLAMA, pages, "fp8_e4m3", "tensor", 1).scales == 2 * 4
    assert compulsory_bytes(MLA, pages, "int8", "token", 1).scales == 150 * 4
    assert compulsory_bytes(LLAMA, pages, "int8", "token", 1).kv == 150 * 8 * 256


def test_shared_values_are_stored_once():
    pages = paged([1000], 64)
    found = compulsory_bytes(MLA, pages, "bf16", "none", 2)
    assert found.kv == 1000 * 576 * 2
    assert found.queries == 2 * 128 * 576 * 2
    assert found.output == 2 * 128 * 512 * 2


def test_a_shared_prefix_is_moved_once_where_a_cache_holds_it():
    pages = paged([100, 70, 64], 16, shared_tokens=48)
    once = compulsory_bytes(LLAMA, pages, "int8", "token", 1)
    each = separate_bytes(LLAMA, pages, "int8", "token", 1)
    assert each.kv - once.kv == 2 * 48 * 8 * 256
    assert each.scales - once.scales == 2 * 48 * 8 * 8
    assert each[2:] == once[2:]


@given(SEQUENCES, st.integers(1, 8))
def test_operations_count_the_pairs_that_a_mask_leaves(sequences, q_len):
    pairs = sum(sum(j <= length - q_len + i for i in range(q_len) for j in range(length)) for length in sequences)
    assert flops(LLAMA, tuple(sequences), q_len) == 2 * 256 * 32 * pairs
    assert flops(MLA, tuple(sequences), q_len) == 2 * 1088 * 128 * pairs


def test_the_cache_has_whole_pages():
    pages = paged([65, 1], 16)
    assert cache_bytes(LLAMA, pages, "bf16", "none") == 6 * 16 * 8 * 256 * 2
    assert cache_bytes(LLAMA, pages, "int8", "token") == 6 * 16 * 8 * (256 + 2 * 4)
