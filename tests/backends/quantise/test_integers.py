"""Integers with and without a zero point, bit for bit, and multiplied by a kernel of torch."""

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis.extra.numpy import arrays

from backends.torch.quantise.formats import Format, format_of
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
from tests.backends.quantise.references import Array, Stored, hard_matrix, shifted, symmetric

SYMMETRIC = [format_of("int8", "tensor"), format_of("int8", "row"), format_of("w8a16"), format_of("w4a16")]
SHIFTED = [format_of(name, block, zero_point=True) for name, block in (("int8", "tensor"), ("int8", "row"), ("w4a16", "1x128"))]
every_format = pytest.mark.parametrize("fmt", SYMMETRIC + SHIFTED, ids=lambda each: each.title)


def expected(fmt: Format, x: Array) -> Stored:
    bits, scale_type = fmt.element.bits, {torch.float32: np.float32, torch.bfloat16: ml_dtypes.bfloat16}[fmt.scaling.dtype]
    if fmt.scaling.zero_point_dtype is None:
        return symmetric(x, *fmt.block, bits, scale_type)
    return shifted(x, *fmt.block, bits, -128 if bits == 8 else 0, scale_type)


@every_format
def test_the_definition(fmt: Format) -> None:
    x = hard_matrix(12, 512, 7)
    assert_same_bits(quantise(x, fmt), expected(fmt, x.numpy()))
    positive = x.abs() + 0.5
    assert_same_bits(quantise(positive, fmt), expected(fmt, positive.numpy()))
    assert_same_bits(quantise(-positive, fmt), expected(fmt, -positive.numpy()))


@every_format
def test_a_nan_or_an_infinity_makes_its_block_nan(fmt: Format) -> None:
    x = with_bad_numbers(hard_matrix(12, 512, 8))
    quantised = quantise(x, fmt)
    assert quantised.scales.isnan().any()
    values = dequantise(quantised)
    assert values[~x.isfinite()].isnan().all()
    assert values.isnan().all() == (fmt.block.name == "tensor")
    clean = x.isfinite().all(1)
    assert values[clean].isfinite().all() or fmt.block.name == "tensor"


@pytest.mark.parametrize("fmt", SYMMETRIC, ids=lambda each: each.title)
def test_every_number_has_its_negative(fmt: Format) -> None:
    x = hard_matrix(12, 512, 9)
    assert torch.equal(dequantise(quantise(-x, fmt)), -dequantise(quantise(x, fmt)))
    highest = 2 ** (fmt.element.bits - 1) - 1
    codes = codes_of(quantise(x, fmt)).astype(np.int16)
    numbers = np.where(codes > highest, codes - 2**fmt.element.bits, codes)
    assert np.abs(numbers).max() == highest


@pytest.mark.parametrize("fmt", SHIFTED, ids=lambda each: each.title)
def test_zero_is_exact_and_the_range_is_used(fmt: Format) -> None:
    x = torch.rand(4, 128, generator=torch.Generator().manual_seed(1)) * 3 + 1  # zero lies outside of what is there
    x[:, 7] = 0.0
    quantised = quantise(x, fmt)
    assert dequantise(quantised)[:, 7].count_nonzero() == 0
    assert (quantised.zero_points == fmt.element.lowest).all()
    codes = codes_of(quantised).astype(np.int16)
    used = codes - 256 * (codes > 127) if fmt.element.lowest < 0 else codes
    assert (used.min(), used.max()) == (fmt.element.lowest, fmt.element.highest)


@every_format
def test_zeros(fmt: Format) -> None:
    quantised = quantise(torch.zeros(2, 128), fmt)
    assert (quantised.scales == 1).all()
    assert dequantise(quantised).count_nonzero() == 0


@every_format
@few_examples
@given(x=arrays(np.float32, (2, 128), elements=any_float32))
def test_the_error_stays_within_the_bound(fmt: Format, x: np.ndarray) -> None:
    assert_within_bound(torch.tensor(x), fmt)


@pytest.mark.parametrize("fmt", SYMMETRIC[:2], ids=lambda each: each.title)
@few_examples
@given(x=arrays(np.float32, (2, 128), elements=ordinary_float32))
def test_numbers_that_are_in_the_format_already_stay(fmt: Format, x: np.ndarray) -> None:
    once = quantise(torch.tensor(x), fmt)
    twice = quantise(dequantise(once), fmt)
    assert np.array_equal(codes_of(once), codes_of(twice))
    assert torch.equal(once.scales, twice.scales)


@pytest.mark.parametrize("zero_point", [False, True], ids=["symmetric", "zero point"])
def test_torchs_kernel_for_int4_weights_multiplies_them(zero_point: bool) -> None:
    """``_weight_int4pack_mm``: x (m x k) times (code - 8) * scale + zero, in groups along K."""
    generator = torch.Generator().manual_seed(3)
    weight, x = torch.randn(32, 256, generator=generator), torch.randn(4, 256, generator=generator)
    quantised = quantise(weight, format_of("w4a16", zero_point=zero_point))
    codes = torch.tensor(codes_of(quantised).astype(np.int32))
    scales = quantised.scales.to(torch.float32)
    unsigned = codes if zero_point else (codes + 8) % 16
    zeros = (8 - quantised.zero_points.to(torch.float32)) * scales if zero_point else torch.zeros_like(scales)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(unsigned, 1)
    scales_and_zeros = torch.stack((scales, zeros), -1).transpose(0, 1).contiguous()
    product = torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, 128, scales_and_zeros)
    exact = x.to(torch.float64) @ dequantise(quantised).t()
    assert (product - exact).norm() <= 1e-5 * exact.norm()


def test_torchs_kernel_for_int8_weights_multiplies_them() -> None:
    generator = torch.Generator().manual_seed(4)
    weight, x = torch.randn(32, 256, generator=generator), torch.randn(4, 256, generator=generator)
    quantised = quantise(weight, format_of("w8a16"))
    product = torch.ops.aten._weight_int8pack_mm(x, quantised.data, quantised.scales[:, 0].to(torch.float32))
    exact = x.to(torch.float64) @ dequantise(quantised).t()
    assert (product - exact).norm() <= 1e-5 * exact.norm()


def test_torchs_integer_product_is_exact() -> None:
    generator = torch.Generator().manual_seed(5)
    a = quantise(torch.randn(32, 256, generator=generator), format_of("int8", "row"))
    b = quantise(torch.randn(64, 256, generator=generator), format_of("int8", "row"))
    product = torch._int_mm(a.data, b.data.t()).to(torch.float64) * a.scales.double() * b.scales.double().t()
    torch.testing.assert_close(product, dequantise(a) @ dequantise(b).t(), rtol=1e-12, atol=1e-12)
