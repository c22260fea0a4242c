"""What a check reads of stored numbers is what they are, whichever way it is read."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from backends.jax import widening
from backends.jax.widening import row_blocks, times, wide

TYPES = [
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    ml_dtypes.bfloat16,
    np.float16,
    np.float32,
    np.float64,
    np.int8,
    np.int32,
]
NARROW = TYPES[:3]


@pytest.mark.parametrize("dtype", NARROW)
def test_every_number_of_a_narrow_type_is_read_as_it_is(dtype: Any) -> None:
    bits = np.uint8 if np.dtype(dtype).itemsize == 1 else np.uint16
    stored = np.arange(np.iinfo(bits).max + 1, dtype=bits).view(dtype).reshape(64, -1)
    with np.errstate(invalid="ignore"):
        expected = stored.astype(np.float64)
    np.testing.assert_array_equal(wide(stored), expected)
    np.testing.assert_array_equal(wide(stored[3:9, 1:3]), expected[3:9, 1:3])
    np.testing.assert_array_equal(wide(stored.T), expected.T)


@pytest.mark.parametrize("scratch_bytes", [1, 4096, 1 << 26])
@pytest.mark.parametrize("dtype", TYPES)
def test_a_product_is_the_same_however_a_matrix_lies_and_is_divided(
    dtype: Any, scratch_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(widening, "SCRATCH_BYTES", scratch_bytes)
    draw = np.random.default_rng(7)
    stored = draw.integers(-100, 100, (37, 53)).astype(dtype)
    of_rows, of_columns = draw.standard_normal(37), draw.standard_normal(53)
    np.testing.assert_allclose(times(stored, of_columns), stored.astype(np.float64) @ of_columns, rtol=1e-13, atol=1e-10)
    np.testing.assert_allclose(times(stored.T, of_rows), stored.T.astype(np.float64) @ of_rows, rtol=1e-13, atol=1e-10)


def test_one_wrong_element_shows_in_its_row_alone() -> None:
    stored = np.ones((5, 4), np.float32)
    stored[2, 3] = np.nan
    np.testing.assert_array_equal(np.isnan(times(stored, np.ones(4))), [False, False, True, False, False])
    np.testing.assert_array_equal(np.isnan(times(stored.T, np.ones(5))), [False, False, False, True])


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_a_matrix_of_nothing_gives_zeros(shape: tuple[int, int]) -> None:
    assert times(np.ones(shape, np.float32), np.ones(shape[1])).tolist() == [0.0] * shape[0]


def test_blocks_of_all_threads_together_stay_within_the_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.broadcast_to(np.float32(0), (1 << 14, 1 << 13))
    for threads in (1, 2, 16):
        monkeypatch.setattr(widening, "threads", lambda threads=threads: threads)
        blocks = list(row_blocks(matrix))
        assert max(each.stop - each.start for each in blocks) * matrix.shape[1] * 8 * threads <= widening.SCRATCH_BYTES
        assert sum(len(range(*each.indices(matrix.shape[0]))) for each in blocks) == matrix.shape[0]
