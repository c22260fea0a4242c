"""Data of decoding: pages, tables, scales, what stands where no token is, and what rounding costs."""

from typing import Any

import numpy as np
import pytest
import torch

from backends.decode_data import LOUD, MEAN_SQUARES, meeting_columns
from backends.seeds import mixed_seed
from backends.torch.data import DISTRIBUTIONS
from backends.torch.decode.error import quantisation_error
from backends.torch.decode.kernel import DecodeKernel
from backends.torch.decode.places import own_tokens
from suite.jobs.decode import sizes_of
from tests.backends.decode_cases import STORED, by_definition, decode_case, prepared


def test_new_data_has_another_table_of_the_same_pages_in_the_same_buffer() -> None:
    kernel = prepared(decode_case("naive", lengths="uniform"), 2)
    first, second = (each.table.data for each in kernel.buffers)
    before, address = first.clone(), first.data_ptr()
    assert not torch.equal(first, second)
    kernel.refill(99)
    assert first.data_ptr() == address
    assert not torch.equal(first, before)
    assert sorted(first.flatten().tolist()) == sorted(before.flatten().tolist())


def test_pages_change_where_numbers_are_and_not_what_they_are() -> None:
    """Nor do implementations: whoever computes, and over which pages, computes the same."""
    found = []
    for page_size, order in ((1, "random"), (16, "random"), (16, "contiguous"), (64, "random")):
        case = decode_case("naive", "int8", scaling="token", page_size=page_size, order=order)
        kernel = prepared(case)
        found.append(kernel.buffers[0].k.worth(1, 0)[:])
    assert all(torch.equal(found[0], each) for each in found[1:])
    flash = prepared(decode_case("library_flash"))
    naive = prepared(decode_case("naive"))
    assert torch.equal(flash.buffers[0].k.worth(1, 0)[:], naive.buffers[0].k.worth(1, 0)[:])


def test_a_prefix_is_the_same_numbers_in_every_sequence() -> None:
    kernel = prepared(decode_case("naive", lengths="uniform", shared_prefix=32))
    first, second = (kernel.buffers[0].k.worth(each, 1)[:] for each in (0, 1))
    assert torch.equal(first[:32], second[:32])
    assert not torch.equal(first[32:40], second[32:40])


@pytest.mark.parametrize(("name", "scaling"), STORED)
def test_where_no_token_is_are_numbers_that_would_show(name: str, scaling: str | None) -> None:
    """Behind the last token of a page, and in the page that entries behind a sequence's last one name."""
    case = decode_case("naive", name, kv_len=37, scaling=scaling)
    each = prepared(case).buffers[0]
    assert (each.table.data[:, -1] == len(each.k.data) - 1).all()
    last = each.table.data[1, 2]
    for cache in (each.k, each.v):
        codes = torch.cat([cache.data[last, 0, 5:].double(), cache.data[-1, 0].double()]).abs()
        scales = torch.ones(1) if cache.scales is None else cache.scales
        if scales.dim() > 1:
            scales = torch.cat([scales[last, 0, 5:], scales[-1, 0]])[:, None]
        (size,) = (codes * scales.double()).unique().tolist()
        largest = max(float(cache.worth(sequence, head)[:].abs().max()) for sequence in range(3) for head in range(2))
        assert size == pytest.approx(largest if scaling == "tensor" else LOUD, rel=0.01)


def test_a_scale_of_a_token_is_of_its_largest_number() -> None:
    each = prepared(decode_case("naive", "int8", scaling="token")).buffers[0]
    assert each.k.scales is not None
    assert each.k.scales.shape == each.k.data.shape[:3]
    places = each.table.places
    codes = each.k.data[places // 16, :, places % 16]
    assert (codes.abs().amax(2) == 127).all()
    tensor = prepared(decode_case("naive", "fp8_e4m3")).buffers[0].k
    assert tensor.scales is not None
    assert tensor.scales.shape == (1,)


def test_the_latest_key_weighs_about_as_much_as_the_others_in_one_query_of_each_group() -> None:
    case = decode_case("naive", "bf16", "8/2x128", 4, 4096)
    kernel = prepared(case)
    each = kernel.buffers[0]
    shares = []
    for sequence in range(4):
        weights = (each.k.worth(sequence, 1)[:] @ each.q.data[sequence, 0, 4:].double().t() / 128**0.5).softmax(0)
        shares.append(weights[-1] / weights[:-1].norm(dim=0))
    first, *others = torch.stack(shares).mean(0).tolist()
    assert 0.3 < first < 4
    assert max(others) < 0.1


def test_every_distribution_says_what_a_latest_key_has_of_a_query() -> None:
    """One that is not known is no reason to leave a check out."""
    assert MEAN_SQUARES.keys() == DISTRIBUTIONS.keys()
    with pytest.raises(KeyError):
        meeting_columns(sizes_of(decode_case("naive").workload), "norml")


def drawn(kernel: DecodeKernel, name: str, sequence: int) -> torch.Tensor:
    """What was drawn for K or V of a sequence of the first set: (tokens, kv_heads, columns) in float32."""
    each = kernel.buffers[0]
    cache = {"k": each.k, "v": each.v}[name]
    index = [id(operand) for operand in each.operands].index(id(cache))
    assert kernel.seed is not None
    spans = [(0, cache.sizes.shared_prefix), own_tokens(cache.sizes)[sequence]]
    seed = mixed_seed(kernel.seed, 0, index)
    return torch.cat([cache.drawn(kernel.distribution, seed, *span) for span in spans if span[0] < span[1]])


@pytest.mark.parametrize("more", [{}, {"shared_prefix": 32}, {"lengths": "skewed", "shared_prefix": 16}], ids=str)
def test_every_token_stands_where_the_latest_table_has_it(more: dict[str, Any]) -> None:
    kernel = prepared(decode_case("naive", "fp32", **more))
    for seed in (3, 4):
        kernel.refill(seed)
        for sequence, head in ((0, 0), (1, 1), (2, 0)):
            for name, cache in (("k", kernel.buffers[0].k), ("v", kernel.buffers[0].v)):
                assert torch.equal(cache.worth(sequence, head)[:], drawn(kernel, name, sequence)[:, head].double())


def test_the_error_of_quantisation_is_that_of_the_result() -> None:
    """By the definition over everything, where everything is looked at: four sequences of one KV head."""
    case = decode_case("naive", "int8", "4/1x64", 4, 90, scaling="token", lengths="uniform", shared_prefix=16)
    kernel = prepared(case)
    stored, exact = by_definition(kernel, case), []
    for sequence in range(4):
        keys, values = (drawn(kernel, name, sequence)[:, 0].double() for name in "kv")
        exact.append((kernel.buffers[0].q.data[sequence, 0].double() @ keys.t() / 8).softmax(1) @ values)
    right = torch.cat(exact)
    told = kernel.describe()["quantisation_error"]
    assert told == pytest.approx(float((stored - right).norm() / right.norm()), rel=1e-9)


def test_the_error_of_quantisation_falls_with_more_bits_and_more_scales() -> None:
    def error(name: str, scaling: str | None, distribution: str = "normal") -> float:
        kernel = prepared(decode_case("naive", name, "4/2x128", 4, 256, scaling=scaling, distribution=distribution))
        told = kernel.describe()["quantisation_error"]
        assert isinstance(told, float)
        return told

    fp16, bf16 = error("fp16", None), error("bf16", None)
    token, tensor = (error("int8", scaling) for scaling in ("token", "tensor"))
    fp8 = error("fp8_e4m3", "token")
    assert 0 < fp16 < bf16 / 4 < token / 4
    assert token < tensor < fp8 < 0.1
    assert error("int8", "token", "outliers") < error("int8", "tensor", "outliers") / 2


def test_nothing_is_lost_where_numbers_are_stored_as_they_are_drawn() -> None:
    case = decode_case("naive", "fp32")
    assert "quantisation_error" not in prepared(case).describe()
    integers = decode_case("naive", "int8", distribution="integer", scaling="token")
    assert prepared(integers).describe()["quantisation_error"] < 1e-6
    zeros = decode_case("naive", "int8", distribution="zeros")
    assert quantisation_error(prepared(zeros), "int8", sizes_of(zeros.workload)) is None


def test_entries_of_the_table_that_are_used_are_those_of_the_lengths() -> None:
    case = decode_case("naive", lengths="skewed", batch=5)
    each, sizes = prepared(case).buffers[0], sizes_of(case.workload)
    used = np.pad(each.table.used, ((0, 0), (0, 1)))
    assert used.sum(1).tolist() == [-(-length // 16) for length in sizes.tokens]
    assert (each.table.data.numpy()[~used] == sizes.paging.page_count).all()
    assert sorted(each.table.data.numpy()[used].tolist()) == list(range(sizes.paging.page_count))
