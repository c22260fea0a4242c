"""NVIDIA's nvfp4, bit for bit."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from backends.torch.quantise.elements import E4M3
from backends.torch.quantise.formats import format_of
from backends.torch.quantise.quantised import dequantise, quantise
from tests.backends.quantise.helpers import (
    any_float32,
    assert_same_bits,
    assert_within_bound,
    codes_of,
    few_examples,
    with_bad_numbers,
)
from tests.backends.quantise.references import hard_matrix, nvfp4

NVFP4 = format_of("nvfp4")


def milder(rows: int, k: int, seed: int) -> torch.Tensor:
    """Blocks whose scales span E4M3: zero, subnormal, normal and the largest."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, k, generator=generator)
    powers = torch.exp2(torch.randint(-24, 1, (rows, k // 16), generator=generator).to(torch.float32))
    return x * powers.repeat_interleave(16, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("make", [hard_matrix, milder], ids=["hard", "mild"])
def test_the_definition(make: type, dtype: torch.dtype) -> None:
    x = make(12, 512, 3).to(dtype)
    quantised = quantise(x, NVFP4)
    assert_same_bits(quantised, nvfp4(x.numpy()))
    assert not (quantised.scales.view(torch.uint8) & 0x80).any(), "scales have no sign, that of zero included"


def test_mild_data_has_scales_of_every_kind() -> None:
    codes = quantise(milder(12, 512, 3), NVFP4).scales.view(torch.uint8)
    assert (codes == 0).any()
    assert ((codes > 0) & (codes < 8)).any(), "subnormal scales"
    assert codes.max() == E4M3.largest_code


def test_the_scales_of_a_small_example() -> None:
    """Largest of the tensor 12: 12 / 2688 for the tensor, 448 for its block; the other block has 3 / 6 of it: 112."""
    x = torch.zeros(1, 32)
    x[0, :4] = torch.tensor([12.0, -6.0, 2.9, 1.0])
    x[0, 16:18] = torch.tensor([3.0, 0.24])
    quantised = quantise(x, NVFP4)
    assert quantised.tensor_scale == np.float32(12 / 2688)
    assert quantised.scales.to(torch.float32).tolist() == [[448.0, 112.0]]
    assert codes_of(quantised)[0, :4].tolist() == [7, 8 | 5, 3, 1]  # 6, -3, 1.5 (from 1.45), 0.5
    assert codes_of(quantised)[0, 16:18].tolist() == [7, 1]  # 6, and 0.48 to 0.5


def test_a_nan_or_an_infinity_anywhere_makes_everything_nan() -> None:
    x = milder(12, 512, 4)
    for bad in (float("nan"), float("inf"), float("-inf")):
        x[7, 100] = bad
        quantised = quantise(x, NVFP4)
        assert_same_bits(quantised, nvfp4(x.numpy()))
        assert dequantise(quantised).isnan().all()
    assert dequantise(quantise(with_bad_numbers(x), NVFP4)).isnan().all()


def test_zeros() -> None:
    quantised = quantise(torch.zeros(2, 32), NVFP4)
    assert quantised.tensor_scale == 1.0
    assert quantised.scales.view(torch.uint8).count_nonzero() == 0
    assert dequantise(quantised).count_nonzero() == 0


def test_a_block_far_below_the_tensor_becomes_zeros() -> None:
    """Its scale would be below half of E4M3's smallest number."""
    x = torch.zeros(1, 32)
    x[0, 0] = 458752.0
    x[0, 16] = 1.0
    assert dequantise(quantise(x, NVFP4))[0, 16] == 0.0
    x[0, 16] = 1.001
    assert dequantise(quantise(x, NVFP4))[0, 16] > 0.0


@few_examples
@given(x=arrays(np.float32, (2, 64), elements=any_float32))
def test_the_error_stays_within_the_bound(x: np.ndarray) -> None:
    assert_within_bound(torch.tensor(x), NVFP4)


@few_examples
@given(
    x=arrays(np.float32, (2, 32), elements=st.floats(-1, 1, width=32)),
    powers=arrays(np.int8, (4, 1), elements=st.integers(-24, 0)),
)
def test_the_error_stays_within_the_bound_where_scales_are_small(x: np.ndarray, powers: np.ndarray) -> None:
    spread = (x.reshape(4, 16) * np.float32(2.0) ** powers).reshape(2, 32).astype(np.float32)
    assert_within_bound(torch.tensor(spread), NVFP4)


@few_examples
@given(x=arrays(np.float32, (2, 32), elements=st.floats(0.25, 4, width=32)))
def test_numbers_that_are_in_the_format_already_stay(x: np.ndarray) -> None:
    once = quantise(torch.tensor(x), NVFP4)
    twice = quantise(dequantise(once), NVFP4)
    assert np.array_equal(codes_of(once), codes_of(twice))
    assert torch.equal(once.scales.view(torch.uint8), twice.scales.view(torch.uint8))
    assert torch.equal(once.tensor_scale, twice.tensor_scale)
