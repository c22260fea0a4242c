"""Conversions in PTX: every 8-bit number, at every place of a word, against torch's."""

from typing import Any

import numpy as np
import pytest
import torch

from backends.triton.decode import words
from tests.backends.triton.decode.ptx import halves, run

NUMBERS = {
    "fp8_e4m3": torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).half().numpy(),
    "int8": torch.arange(256, dtype=torch.uint8).view(torch.int8).half().numpy(),
}
ALONG = {"fp8_e4m3": words.FP8_ASM, "int8": words.INT8_ASM}
ACROSS = {"fp8_e4m3": words.ZIPPED_FP8_ASM, "int8": words.ZIPPED_INT8_ASM}


def drawn(seed: int) -> tuple[Any, Any]:
    """Bytes (256 x 4), every one of them at each place, and the words they make."""
    random = np.random.default_rng(seed)
    columns = np.stack([random.permutation(256) for _ in range(4)], axis=1).astype(np.uint8)
    return columns, np.ascontiguousarray(columns).view(np.uint32)[:, 0]


@pytest.mark.parametrize("name", ALONG)
def test_a_word_becomes_its_numbers_in_their_order(name: str) -> None:
    columns, given = drawn(1)
    pairs = run(ALONG[name].value, [given], 2)
    found = np.stack([half for pair in pairs for half in halves(pair)], axis=1)
    np.testing.assert_array_equal(found, NUMBERS[name][columns])


@pytest.mark.parametrize("name", ACROSS)
def test_two_words_become_pairs_of_numbers_at_the_same_place(name: str) -> None:
    (even_columns, even), (odd_columns, odd) = drawn(2), drawn(3)
    pairs = run(ACROSS[name].value, [even, odd], 4)
    for place, pair in enumerate(pairs):
        low, high = halves(pair)
        np.testing.assert_array_equal(low, NUMBERS[name][even_columns[:, place]])
        np.testing.assert_array_equal(high, NUMBERS[name][odd_columns[:, place]])
