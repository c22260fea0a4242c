"""What the tests of all formats share."""

import numpy as np
import torch
from hypothesis import settings
from hypothesis import strategies as st

from backends.torch.quantise.blocks import blocked
from backends.torch.quantise.formats import Format
from backends.torch.quantise.packing import unpack
from backends.torch.quantise.quantised import Quantised, dequantise, quantise
from tests.backends.quantise.references import Stored

# The time that an example takes is no fault on a host that others use too.
few_examples = settings(max_examples=30, deadline=None)
any_float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
# Scales do not become as small as they can be: what is rounded once is then a fixed point.
ordinary_float32 = st.one_of(
    st.just(0.0), *(st.floats(low, high, width=32) for low, high in ((2.0**-60, 2.0**30), (-(2.0**30), -(2.0**-60))))
)


def codes_of(quantised: Quantised) -> np.ndarray:
    """Elements, one a byte."""
    return unpack(quantised.data.view(torch.uint8), quantised.format.element.bits).numpy()


def assert_same_bits(quantised: Quantised, expected: Stored) -> None:
    """Scales first: a wrong scale makes all elements wrong.  NaN scales count as equal, whatever their bits."""
    stored = quantised.scales
    scales = stored.view(torch.uint8).numpy() if stored.dtype.itemsize == 1 else stored.to(torch.float32).numpy()
    np.testing.assert_array_equal(scales, expected.scales.astype(scales.dtype))
    if expected.zero_points is not None:
        assert quantised.zero_points is not None
        np.testing.assert_array_equal(quantised.zero_points.numpy(), expected.zero_points)
    if expected.tensor_scale is not None:
        assert quantised.tensor_scale is not None
        np.testing.assert_array_equal(quantised.tensor_scale.numpy(), expected.tensor_scale)
    np.testing.assert_array_equal(codes_of(quantised), expected.codes)


def assert_within_bound(x: torch.Tensor, number_format: Format) -> None:
    """Every finite block is off by no more than the format's bound says."""
    exact = x.to(torch.float64)
    error = (dequantise(quantise(x, number_format)) - exact).abs()
    blocks = blocked(exact.abs(), number_format.block)
    largest = blocks.amax((1, 3), keepdim=True).expand(blocks.shape).reshape(-1, x.shape[1])[: x.shape[0]]
    bound = number_format.bound.of(exact.abs(), largest, exact.abs().amax())
    worst = (error - bound).argmax()
    assert (error <= bound).all(), (x.view(-1)[worst], error.view(-1)[worst], bound.view(-1)[worst])


def with_bad_numbers(x: torch.Tensor) -> torch.Tensor:
    """NaN and infinities, in places that fall into different blocks of every format with blocks."""
    x = x.clone()
    x[0, 3], x[2, 130], x[5, 300] = float("nan"), float("inf"), float("-inf")
    return x
