"""8-bit floats with float32 scales, bit for bit, in every kind of block."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis.extra.numpy import arrays

from backends.torch.quantise.elements import E4M3, E5M2, SmallFloat
from backends.torch.quantise.formats import FAMILIES, Format, format_of
from backends.torch.quantise.quantised import dequantise, quantise
from tests.backends.quantise.helpers import (
    any_float32,
    assert_same_bits,
    assert_within_bound,
    codes_of,
    few_examples,
    ordinary_float32,
    with_bad_numbers,
)
from tests.backends.quantise.references import fp8, hard_matrix

ELEMENTS = {"fp8_e4m3": E4M3, "fp8_e5m2": E5M2}
FORMATS = [format_of(name, block.name) for name in ELEMENTS for block in FAMILIES[name].blocks]
every_format = pytest.mark.parametrize("fmt", FORMATS, ids=lambda each: each.title)


@every_format
@pytest.mark.parametrize("rows", [256, 140], ids=["whole blocks", "a block that falls short"])
def test_the_definition(fmt: Format, rows: int) -> None:
    x = hard_matrix(rows, 384, 5)
    x[:, 128:] *= 1e-3
    quantised = quantise(x, fmt)
    assert quantised.data.dtype == {E4M3: torch.float8_e4m3fn, E5M2: torch.float8_e5m2}[fmt.element]
    assert_same_bits(quantised, fp8(x.numpy(), fmt.element, *fmt.block))


@every_format
def test_a_nan_or_an_infinity_makes_its_block_nan(fmt: Format) -> None:
    x = with_bad_numbers(hard_matrix(256, 384, 6))
    quantised = quantise(x, fmt)
    assert_same_bits(quantised, fp8(x.numpy(), fmt.element, *fmt.block))
    values = dequantise(quantised)
    assert values[~x.isfinite()].isnan().all()
    assert values.isnan().all() == (fmt.block.name == "tensor")


@pytest.mark.parametrize(("name", "element"), ELEMENTS.items(), ids=ELEMENTS)
def test_the_largest_number_takes_the_largest_code(name: str, element: SmallFloat) -> None:
    x = torch.randn(8, 256, generator=torch.Generator().manual_seed(1))
    quantised = quantise(x, format_of(name, "row"))
    assert torch.equal(quantised.scales[:, 0], x.abs().amax(1) / element.largest)
    assert ((codes_of(quantised) & 0x7F) == element.largest_code).sum(1).min() >= 1


@every_format
def test_zeros_and_numbers_below_any_scale(fmt: Format) -> None:
    zeros = quantise(torch.zeros(128, 128), fmt)
    assert (zeros.scales == 1).all()
    assert dequantise(zeros).count_nonzero() == 0
    tiny = quantise(torch.full((128, 128), 1e-44), fmt)
    assert (tiny.scales == 2.0**-126).all()
    assert dequantise(tiny).isfinite().all()


def test_elements_are_rounded_once() -> None:
    """A quotient rounded to float32 first would be a tie, and go to the even code instead."""
    x = torch.zeros(1, 128, dtype=torch.float64)
    x[0, 0], x[0, 1] = 448.0, 1 + 2.0**-4 + 2.0**-40
    assert dequantise(quantise(x, format_of("fp8_e4m3")))[0, 1] == 1.125


@pytest.mark.parametrize("block", ["tensor", "row", "1x128", "128x128"])
@pytest.mark.parametrize("name", ELEMENTS)
@few_examples
@given(x=arrays(np.float32, (2, 128), elements=any_float32))
def test_the_error_stays_within_the_bound(name: str, block: str, x: np.ndarray) -> None:
    assert_within_bound(torch.tensor(x), format_of(name, block))


@pytest.mark.parametrize("name", ELEMENTS)
@few_examples
@given(x=arrays(np.float32, (2, 128), elements=ordinary_float32))
def test_numbers_that_are_in_the_format_already_stay(name: str, x: np.ndarray) -> None:
    once = quantise(torch.tensor(x), format_of(name, "1x128"))
    twice = quantise(dequantise(once), format_of(name, "1x128"))
    assert np.array_equal(codes_of(once), codes_of(twice))
    assert torch.equal(once.scales, twice.scales)
