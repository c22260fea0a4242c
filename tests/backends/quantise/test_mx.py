"""OCP microscaling, bit for bit."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis.extra.numpy import arrays

from backends.torch.quantise.elements import E2M1, E2M3, E3M2, E4M3, E5M2, SmallFloat
from backends.torch.quantise.formats import format_of
from backends.torch.quantise.mx import PowerOfTwoScaling
from backends.torch.quantise.quantised import Quantised, dequantise, quantise
from tests.backends.quantise.helpers import (
    any_float32,
    assert_same_bits,
    assert_within_bound,
    codes_of,
    few_examples,
    ordinary_float32,
    with_bad_numbers,
)
from tests.backends.quantise.references import hard_matrix, mx

FORMATS = {"mxfp8_e4m3": E4M3, "mxfp8_e5m2": E5M2, "mxfp6_e2m3": E2M3, "mxfp6_e3m2": E3M2, "mxfp4": E2M1}
every_format = pytest.mark.parametrize(("name", "element"), FORMATS.items(), ids=FORMATS)


def of(name: str, *numbers: float, dtype: torch.dtype = torch.float32) -> Quantised:
    """One block that begins with ``numbers``."""
    x = torch.zeros(1, 32, dtype=dtype)
    x[0, : len(numbers)] = torch.tensor(numbers, dtype=dtype)
    return quantise(x, format_of(name))


def scale_code(quantised: Quantised) -> int:
    return int(quantised.scales.view(torch.uint8)[0, 0])


@every_format
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_the_definition(name: str, element: SmallFloat, dtype: torch.dtype) -> None:
    x = hard_matrix(12, 512, 1).to(dtype)
    assert_same_bits(quantise(x, format_of(name)), mx(x.numpy(), element))


@every_format
def test_a_nan_or_an_infinity_makes_its_block_nan_and_no_other(name: str, element: SmallFloat) -> None:
    x = with_bad_numbers(hard_matrix(12, 512, 2))
    quantised = quantise(x, format_of(name))
    assert_same_bits(quantised, mx(x.numpy(), element))
    bad = ~x.view(-1, 32).isfinite().all(1)
    assert bad.sum() == 3
    assert torch.equal(dequantise(quantised).view(-1, 32).isnan(), bad[:, None].expand(-1, 32))


@every_format
def test_the_scale_is_a_power_of_two_that_torch_reads_alike(name: str, element: SmallFloat) -> None:
    codes = torch.arange(256, dtype=torch.uint8).view(16, 16)
    stored = codes.view(torch.float8_e8m0fnu)
    ours = PowerOfTwoScaling(element).steps(stored, None)
    assert ours[0, 0] == 2.0**-127
    assert ours[15, 14] == 2.0**127
    assert math.isnan(ours[15, 15])
    assert torch.equal(ours.nan_to_num(nan=-1.0), stored.to(torch.float64).nan_to_num(nan=-1.0))


@every_format
def test_the_largest_number_decides_the_scale(name: str, element: SmallFloat) -> None:
    emax = element.largest_exponent
    assert scale_code(of(name, 1.0)) == 127 - emax
    assert scale_code(of(name, -1.999, 0.1)) == 127 - emax
    assert scale_code(of(name, 2.0)) == 128 - emax
    below_two = float(np.nextafter(np.float32(2), np.float32(0)))
    assert scale_code(of(name, below_two)) == 127 - emax, "a rounded logarithm would say one more"


@every_format
def test_numbers_past_the_largest_are_clamped_to_it(name: str, element: SmallFloat) -> None:
    """The largest of a block lies between 2^emax and 2^(emax + 1) in units of the scale."""
    top = 2.0 ** (element.largest_exponent + 1) * (1 - 2.0**-20)
    quantised = of(name, top, -top)
    assert scale_code(quantised) == 127
    assert dequantise(quantised)[0, :2].tolist() == [element.largest, -element.largest]


@every_format
def test_blocks_without_a_scale_of_their_own(name: str, element: SmallFloat) -> None:
    zeros = of(name)
    assert scale_code(zeros) == 0
    assert codes_of(zeros).tolist() == [[0] * 32]
    assert dequantise(zeros).count_nonzero() == 0
    assert scale_code(of(name, 2.0**-149)) == 0, "smaller than the smallest scale can carry"
    assert dequantise(of(name, 2.0**-149)).count_nonzero() == 0
    assert scale_code(of(name, 2.0**127)) == 254 - element.largest_exponent
    beyond = of(name, 2.0 ** (128 + element.largest_exponent), dtype=torch.float64)
    assert scale_code(beyond) == 0xFF
    assert dequantise(beyond).isnan().all()


@every_format
def test_signed_zeros_are_kept(name: str, element: SmallFloat) -> None:
    assert codes_of(of(name, 1.0, -0.0, 0.0))[0, 1:3].tolist() == [1 << (element.bits - 1), 0]


@every_format
def test_one_huge_number_takes_the_others_with_it(name: str, element: SmallFloat) -> None:
    quantised = of(name, 1e30, 1.0, -1.0)
    assert dequantise(quantised)[0, 1:].count_nonzero() == 0
    assert dequantise(quantised)[0, 0] == pytest.approx(1e30, rel=quantised.format.bound.roundoff)


@every_format
@few_examples
@given(x=arrays(np.float32, (2, 64), elements=any_float32))
def test_the_error_stays_within_the_bound(name: str, element: SmallFloat, x: np.ndarray) -> None:
    assert_within_bound(torch.tensor(x), format_of(name))


@every_format
@few_examples
@given(x=arrays(np.float32, (2, 32), elements=ordinary_float32))
def test_numbers_that_are_in_the_format_already_stay(name: str, element: SmallFloat, x: np.ndarray) -> None:
    once = quantise(torch.tensor(x), format_of(name))
    twice = quantise(dequantise(once), format_of(name))
    assert np.array_equal(codes_of(once), codes_of(twice))
    assert torch.equal(once.scales.view(torch.uint8), twice.scales.view(torch.uint8))


@every_format
def test_the_bound_is_reached(name: str, element: SmallFloat) -> None:
    """No smaller bound would do, for large numbers and for small ones."""
    bound = format_of(name).bound
    emax = element.largest_exponent
    # Clamping, or a tie just above a power of two.
    numbers = [2.0 ** (emax + 1) * (1 - 2.0**-20), 2.0**emax * (1 + element.roundoff)]
    errors = (dequantise(of(name, *numbers))[0, :2] - torch.tensor(numbers, dtype=torch.float64)).abs()
    relative = errors / torch.tensor(numbers, dtype=torch.float64)
    assert relative.max() >= 0.94 * bound.roundoff * (1 - bound.roundoff)
    # Half a step of the smallest numbers, where the block's largest is a power of two.
    small = of(name, 2.0**emax, element.smallest / 2)
    assert abs(float(dequantise(small)[0, 1]) - element.smallest / 2) == bound.step * 2.0**emax
