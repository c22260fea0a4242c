"""Weights to bf16 by the PTX that the kernels have, over every pattern of bits: exact, or rounded once."""

import numpy as np
import pytest
import torch

from backends.triton.quantised import convert
from backends.triton.quantised.exponents import BIAS, FULL, LIGHT, NAN
from backends.triton.quantised.prepack import FP4, INT4, INT8, Places, in_words
from tests.backends.triton.ptx import Numbers, Words, bf16_bits, halves, pair, run

EVERY_WORD = np.arange(1 << 16, dtype=np.uint32)
REGISTERS = EVERY_WORD | (EVERY_WORD[::-1] << np.uint32(16))  # every word in either half, beside another one
SCALES = [1.0, -1.0, 0.0123291015625, 2.0**-126, 3.0e38 / 16, 255 * 2.0**-9]
E2M1 = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0])


def codes_at(moves: tuple[tuple[int, int], ...]) -> tuple[Words, Words]:
    """Codes of one place, in the low and in the high half."""
    low, high = REGISTERS & np.uint32(0xFFFF), REGISTERS >> np.uint32(16)
    return _taken(low, moves), _taken(high, moves)


def _taken(words: Words, moves: tuple[tuple[int, int], ...]) -> Words:
    codes = np.zeros_like(words)
    for bits, left in moves:
        codes |= (words >> np.uint32(left)) & np.uint32(bits)
    return codes


def assert_planes(found: list[Words], places: Places, worth: "Worth") -> None:
    for plane, (found_plane, moves) in enumerate(zip(found, places, strict=True)):
        for half, each in zip(halves(found_plane), codes_at(moves), strict=True):
            np.testing.assert_array_equal(bf16_bits(half), bf16_bits(rounded(worth(plane, each))))


def rounded(numbers: Numbers) -> Numbers:
    return halves(bf16_bits(numbers))[0]


def stored_scale(scale: float) -> float:
    """In bf16."""
    return float(rounded(np.array([scale], dtype=np.float32).astype(np.float64))[0])


class Worth:
    """What a code of a plane is worth."""

    def __init__(self, values: Numbers, scales: list[float]) -> None:
        self._values, self._scales = values, scales

    def __call__(self, plane: int, codes: Words) -> Numbers:
        worth: Numbers = self._values[codes] * self._scales[plane]
        return worth


@pytest.mark.parametrize("scale", SCALES)
def test_int4_is_rounded_once_with_its_scale(scale: float) -> None:
    signed = np.array([*range(8), *range(-8, 0)], dtype=np.float64)
    stored = stored_scale(scale)
    found = run(convert.INT4_ASM.value, [REGISTERS, pair(np.array([stored]))], 4)
    assert_planes(found, INT4, Worth(signed, [stored] * 4))


@pytest.mark.parametrize("zero_point", range(16))
def test_uint4_takes_its_zero_point_off_exactly(zero_point: int) -> None:
    stored = stored_scale(0.0123)
    inputs = [REGISTERS, pair(np.array([stored])), pair(np.array([-(128.0 + zero_point)]))]
    assert_planes(run(convert.UINT4_ASM.value, inputs, 4), INT4, Worth(np.arange(16.0) - zero_point, [stored] * 4))


def test_int8_is_exact() -> None:
    signed = np.array([*range(128), *range(-128, 0)], dtype=np.float64)
    assert_planes(run(convert.INT8_ASM.value, [REGISTERS], 2), INT8, Worth(signed, [1.0, 1.0]))


def light_factor(code: int) -> Words:
    return np.array([(code + 62 << 7) * 0x10001], dtype=np.uint32)


def full_factor(code: int) -> Words:
    return np.array([(0x7FC0 if code == NAN else code << 7) * 0x10001], dtype=np.uint32)


@pytest.mark.parametrize("first", range(LIGHT[0], LIGHT[-1] - 2, 4))
def test_mxfp4_is_exact_at_2_to_minus_64_over_its_light_range(first: int) -> None:
    codes = range(first, first + 4)
    found = run(convert.FP4_ASM.value, [REGISTERS, *map(light_factor, codes)], 4)
    assert_planes(found, FP4, Worth(E2M1, [2.0 ** (code - BIAS - 64) for code in codes]))


@pytest.mark.parametrize("first", [FULL[0], LIGHT[0] - 4, BIAS, LIGHT[-1] + 1, FULL[-1] - 3])
def test_mxfp4_is_exact_over_its_full_range(first: int) -> None:
    codes = range(first, first + 4)
    found = run(convert.FP4_FULL_ASM.value, [REGISTERS, *map(full_factor, codes)], 4)
    assert_planes(found, FP4, Worth(E2M1, [2.0 ** (code - BIAS) for code in codes]))
    assert np.isfinite(np.concatenate([half for plane in found for half in halves(plane)])).all()


def test_mxfp4_with_every_scale_of_its_full_range() -> None:
    of_low = in_words(torch.arange(16, dtype=torch.uint8).repeat_interleave(128)[None], FP4)[0, ::32].numpy()
    every_code = (of_low.astype(np.uint16).astype(np.uint32)) * np.uint32(0x10001)
    for code in FULL:
        for plane in run(convert.FP4_FULL_ASM.value, [every_code, *[full_factor(code)] * 4], 4):
            np.testing.assert_array_equal(halves(plane)[0], E2M1 * 2.0 ** (code - BIAS))


def test_a_scale_that_is_nan_makes_nan_of_zeros_too() -> None:
    found = run(convert.FP4_FULL_ASM.value, [REGISTERS, *[full_factor(NAN)] * 4], 4)
    assert np.isnan(np.concatenate([half for plane in found for half in halves(plane)])).all()


def test_what_lies_outside_the_light_range_needs_the_full_one() -> None:
    """The light factor of a scale of 2^66 is no number any more."""
    assert not np.isfinite(halves(light_factor(BIAS + 66))[0]).all()
    assert LIGHT[-1] < BIAS + 66
