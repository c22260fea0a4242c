"""Small floats, code for code: against the specifications' tables, ml_dtypes, torch, and a search through every midpoint."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from backends.torch.quantise.elements import E4M3, E5M2, SmallFloat, decode
from tests.backends.quantise.helpers import few_examples
from tests.backends.quantise.references import CODES, ELEMENTS, nearest, values_of

SPECIFICATION = json.loads((Path(__file__).parents[2] / "data/number_formats/specification.json").read_text())
TORCH = {E4M3: torch.float8_e4m3fn, E5M2: torch.float8_e5m2}
every_element = pytest.mark.parametrize("element", ELEMENTS, ids=lambda element: element.name)


def encoded(element: SmallFloat, values: Any, *, saturate: bool = True) -> np.ndarray:
    return element.encode(torch.tensor(np.asarray(values, np.float64)), saturate=saturate).numpy()


def all_codes(element: SmallFloat) -> torch.Tensor:
    return torch.arange(1 << element.bits, dtype=torch.uint8)


def sweep(element: SmallFloat) -> np.ndarray:
    """Every number, every midpoint, the float32 numbers next to both, and magnitudes far below and above; both signs."""
    table = values_of(element)[: element.largest_code + 1]
    points = np.concatenate([table, (table[1:] + table[:-1]) / 2]).astype(np.float32)
    around = [np.nextafter(points, np.float32(side)) for side in (-np.inf, np.inf)]
    dense = np.linspace(0, 1.5 * element.largest, 4001, dtype=np.float32)
    far = np.float32(2.0) ** np.arange(-149, 128, dtype=np.float32)
    values = np.concatenate([points, *around, dense, far])
    return np.concatenate([values, -values])


@every_element
def test_the_specification(element: SmallFloat) -> None:
    told, sign = SPECIFICATION[element.name], 1 << (element.bits - 1)
    normal = 1 << element.mantissa_bits
    assert element.bias == told["bias"]
    assert element.largest_exponent == told["emax"]
    assert element.largest == element.value(told["largest_code"]) == -element.value(told["largest_code"] | sign)
    assert element.largest == told["largest"]
    assert element.value(normal) == told["smallest_normal"]
    assert element.value(normal - 1) == told["largest_subnormal"]
    assert element.smallest == element.value(1) == told["smallest"]
    if told["infinity_code"] is not None:
        assert element.value(told["infinity_code"]) == math.inf == -element.value(told["infinity_code"] | sign)
    assert all(math.isnan(element.value(code | with_sign)) for code in told["nan_codes"] for with_sign in (0, sign))


@every_element
def test_every_code_is_worth_what_ml_dtypes_says(element: SmallFloat) -> None:
    worth = decode(element, all_codes(element)).numpy()
    np.testing.assert_array_equal(worth, values_of(element))
    np.testing.assert_array_equal(np.signbit(worth)[~np.isnan(worth)], np.signbit(values_of(element))[~np.isnan(worth)])


@pytest.mark.parametrize("element", TORCH, ids=lambda element: element.name)
def test_every_code_is_worth_what_torch_says(element: SmallFloat) -> None:
    theirs = all_codes(element).view(TORCH[element]).to(torch.float64)
    assert torch.equal(decode(element, all_codes(element)).nan_to_num(nan=-1.5), theirs.nan_to_num(nan=-1.5))


@every_element
def test_every_number_is_its_own_nearest(element: SmallFloat) -> None:
    finite = [code for code in range(1 << element.bits) if math.isfinite(element.value(code))]
    assert encoded(element, [element.value(code) for code in finite]).tolist() == finite


@every_element
def test_rounding_as_ml_dtypes(element: SmallFloat) -> None:
    """Beyond the largest number ml_dtypes gives NaN or infinity where the type has one."""
    values = sweep(element)
    with np.errstate(over="ignore"):
        theirs = values.astype(CODES[element]).view(np.uint8)
    np.testing.assert_array_equal(encoded(element, values, saturate=False), theirs)


@every_element
def test_rounding_by_the_nearest_midpoint(element: SmallFloat) -> None:
    """Also between float32 numbers, where a rounding to float32 on the way would go wrong."""
    values = sweep(element).astype(np.float64)
    values = np.concatenate([values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)])
    np.testing.assert_array_equal(encoded(element, values), nearest(element, values))


@pytest.mark.parametrize("element", TORCH, ids=lambda element: element.name)
def test_rounding_as_torch(element: SmallFloat) -> None:
    """Up to the largest number: versions of torch differ beyond it."""
    values = sweep(element)
    values = values[np.abs(values) <= element.largest]
    theirs = torch.tensor(values).to(TORCH[element]).view(torch.uint8).numpy()
    np.testing.assert_array_equal(encoded(element, values), theirs)


@every_element
def test_saturation(element: SmallFloat) -> None:
    """OFP8, saturating conversions, and MX, section 6.3: what passes the largest number becomes it."""
    sign = 1 << (element.bits - 1)
    top = element.largest_code
    for beyond in (element.largest * 1.0001, element.largest * 2, 1e300, math.inf):
        assert encoded(element, [beyond, -beyond]).tolist() == [top, top | sign]


def test_overflow_without_saturation() -> None:
    """OFP8, non-saturating conversions: E4M3 has NaN for it, E5M2 infinity; a tie goes to the even code."""
    assert encoded(E4M3, [464.0, 464.001, -1e9, math.inf], saturate=False).tolist() == [0x7E, 0x7F, 0xFF, 0x7F]
    assert encoded(E5M2, [61439.9, 61440.0, -1e9, -math.inf], saturate=False).tolist() == [0x7B, 0x7C, 0xFC, 0xFC]


@every_element
def test_nan(element: SmallFloat) -> None:
    """NaN, of whatever sign, or the largest number in a type that has none."""
    codes = encoded(element, [math.nan, -math.nan, 0.0])
    expected = SPECIFICATION[element.name]["nan_codes"] or [element.largest_code]
    assert codes[0] in expected
    assert codes[1] == codes[0]
    assert codes[2] == 0


@every_element
@few_examples
@given(values=st.lists(st.floats(allow_nan=False), min_size=1, max_size=50))
def test_order_is_kept_and_the_error_bounded(element: SmallFloat, values: list[float]) -> None:
    values = sorted(values)
    rounded = decode(element, element.encode(torch.tensor(values, dtype=torch.float64))).numpy()
    assert (np.diff(rounded) >= 0).all()
    inside = np.clip(values, -element.largest, element.largest)
    assert (np.abs(rounded - inside) <= np.maximum(element.roundoff * np.abs(inside), element.smallest / 2)).all()


def test_only_float64_is_encoded() -> None:
    with pytest.raises(AssertionError, match="float64"):
        E4M3.encode(torch.zeros(3))
