"""The order that kernels read quantised operands in: the same bits, and scales that a kernel can take."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from backends.torch.quantise.formats import format_of
from backends.torch.quantise.packing import unpack
from backends.torch.quantise.quantised import Quantised, quantise
from backends.triton.quantised import prepack
from backends.triton.quantised.exponents import BIAS, FULL, LIGHT, NAN, NEUTRAL, Exponents, extremes, neutral, together
from backends.triton.quantised.prepack import (
    FP4,
    INT4,
    INT8,
    Places,
    Prepacked,
    by_blocks,
    e8m0_words,
    from_words,
    in_words,
    places_of,
    prepacked,
)
from suite.errors import UsageError
from tests.backends.quantise.helpers import few_examples

FORMATS = [("w4a16", False), ("w4a16", True), ("w8a16", False), ("mxfp4", False)]


def weights(name: str, zero_point: bool, rows: int = 37, k: int = 384, seed: int = 0) -> Quantised:
    x = torch.randn(rows, k, generator=torch.Generator().manual_seed(seed))
    return quantise(x, format_of(name, zero_point=zero_point))


def codes_of(quantised: Quantised) -> torch.Tensor:
    return unpack(quantised.data.view(torch.uint8), quantised.format.element.bits)


@few_examples
@given(st.integers(1, 5), st.integers(1, 4), st.sampled_from([INT4, INT8, FP4]), st.randoms(use_true_random=False))
def test_words_hold_every_code_and_give_it_back(rows: int, blocks: int, places: Places, random: object) -> None:
    k = blocks * 32 * len(places)
    codes = torch.randint(0, 1 << 16 // len(places), (rows, k), dtype=torch.uint8)
    words = in_words(codes, places)
    assert words.shape == (rows, k // len(places))
    assert torch.equal(from_words(words, places), codes)


@pytest.mark.parametrize("places", [INT4, INT8, FP4])
def test_every_bit_of_a_word_is_one_of_its_numbers(places: Places) -> None:
    bits = [1 << at << left for moves in places for mask, left in moves for at in range(8) if mask >> at & 1]
    assert sorted(bits) == [1 << at for at in range(16)]


def test_a_word_has_numbers_32_apart_from_the_low_bits_up() -> None:
    codes = torch.zeros(1, 256, dtype=torch.uint8)
    codes[0, 128 + 5], codes[0, 128 + 37], codes[0, 128 + 69], codes[0, 128 + 101] = 1, 2, 3, 15
    (word,) = in_words(codes, INT4)[0, 32 + 5 : 32 + 6].tolist()
    assert word & 0xFFFF == 0xF321
    assert in_words(codes, INT4).count_nonzero() == 1


@pytest.mark.parametrize(("name", "zero_point"), FORMATS)
def test_prepacking_keeps_the_bits(name: str, zero_point: bool) -> None:
    quantised = weights(name, zero_point)
    packed = prepacked(quantised)
    rows = quantised.shape[0]
    assert torch.equal(from_words(packed.words, places_of(quantised)), codes_of(quantised))
    if name == "mxfp4":
        turned = packed.scales[:, :rows].t().contiguous().view(torch.uint8)
        assert torch.equal(turned, quantised.scales.view(torch.uint8))
    else:
        assert torch.equal(packed.scales[:, :rows].t(), quantised.scales)
    if zero_point:
        assert packed.zero_points is not None
        assert quantised.zero_points is not None
        assert torch.equal(packed.zero_points[:, :rows].t().to(torch.uint8), quantised.zero_points)


@pytest.mark.parametrize(("name", "zero_point"), FORMATS)
def test_lines_of_scales_have_whole_units_of_16_bytes(name: str, zero_point: bool) -> None:
    packed = prepacked(weights(name, zero_point))
    for grid in (packed.scales, packed.zero_points):
        assert grid is None or grid.stride(0) * grid.itemsize % 16 == 0


@pytest.mark.parametrize(("name", "zero_point"), FORMATS)
def test_fresh_numbers_go_into_the_same_buffers(name: str, zero_point: bool) -> None:
    quantised = weights(name, zero_point)
    packed = prepacked(quantised)
    before = [each.data_ptr() for each in (packed.words, packed.scales)]
    x = torch.randn(*quantised.shape)
    quantised.fill(lambda start, stop: x[start:stop])
    packed.fill()
    assert [each.data_ptr() for each in (packed.words, packed.scales)] == before
    assert torch.equal(packed.words, prepacked(quantised).words)
    assert torch.equal(packed.scales, prepacked(quantised).scales)


@pytest.mark.parametrize(("name", "zero_point"), FORMATS)
def test_where_rows_are_cut_changes_nothing(name: str, zero_point: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    quantised = weights(name, zero_point)
    whole, whole_seen = Prepacked.empty(quantised), prepacked(quantised).fill()
    whole.fill()
    monkeypatch.setattr(prepack, "CHUNK_ELEMENTS", 5 * 384)
    cut = Prepacked.empty(quantised)
    assert cut.fill() == whole_seen
    assert torch.equal(cut.words, whole.words)
    assert torch.equal(cut.scales, whole.scales)


def test_scales_are_padded_with_zeros() -> None:
    padded = by_blocks(torch.ones(5, 3))
    assert padded.shape == (3, 16)
    assert padded.sum() == 15
    assert e8m0_words(torch.tensor([[1, 2, 3, 4]], dtype=torch.uint8)).tolist() == [[0x04030201]]


def test_scales_of_zeros_do_not_ask_for_the_full_conversion() -> None:
    quantised = quantise(torch.zeros(3, 128), format_of("mxfp4"))
    assert int(quantised.scales.view(torch.uint8).max()) == 0
    assert Prepacked.empty(quantised).fill() == Exponents(NEUTRAL, NEUTRAL, nan=False)


def test_a_block_of_zeros_keeps_a_scale_that_is_nan() -> None:
    scales = torch.tensor([[0, NAN, 5]], dtype=torch.uint8)
    elements = torch.zeros(1, 96, dtype=torch.uint8)
    elements[0, 40], elements[0, 64] = 8, 1  # a zero with a sign, and a number
    assert neutral(scales, elements).tolist() == [[NEUTRAL, NAN, 5]]


def test_extremes_leave_nan_out_and_tell_of_it() -> None:
    seen = together(
        [extremes(torch.tensor([[100, NAN], [140, 120]], dtype=torch.uint8)), extremes(torch.tensor([[90]]).byte())]
    )
    assert seen == Exponents(90, 140, nan=True)


@pytest.mark.parametrize(
    ("exponents", "full"),
    [
        (Exponents(LIGHT[0], LIGHT[-1], nan=False), False),
        (Exponents(LIGHT[0] - 1, BIAS, nan=False), True),
        (Exponents(BIAS, LIGHT[-1] + 1, nan=False), True),
        (Exponents(BIAS, BIAS, nan=True), True),
    ],
)
def test_the_full_conversion_is_for_what_the_light_one_has_not(exponents: Exponents, full: bool) -> None:
    assert exponents.need_full is full
    exponents.check()


@pytest.mark.parametrize("exponents", [Exponents(FULL[0] - 1, BIAS, nan=False), Exponents(BIAS, FULL[-1] + 1, nan=False)])
def test_scales_that_no_conversion_takes_are_refused_with_range_and_remedy(exponents: Exponents) -> None:
    with pytest.raises(UsageError, match=r"this kernel takes from 2\^-125 to 2\^125.*scale the weights, or take impl"):
        exponents.check()
