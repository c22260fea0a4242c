"""Stored numbers as float64 on the host, by every core.

ml_dtypes converts one number at a time and holds Python's lock meanwhile; a table of all that a narrow type can hold takes a
tenth of the instructions and none of the lock.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# In float64, over all threads: what a check adds to the memory that a case is planned to take.  Several times as much stays
# with the process, which keeps for each thread what it freed.
SCRATCH_BYTES = 16 * 2**20
MOST_THREADS = 16  # past which memory, not arithmetic, is what reading waits for


def wide(stored: NDArray[Any]) -> NDArray[np.float64]:
    """Each number of an array as float64."""
    if stored.dtype.isbuiltin == 1:  # NumPy's own; of ml_dtypes' none has more than 16 bits
        return stored.astype(np.float64)
    bits = np.uint8 if stored.dtype.itemsize == 1 else np.uint16
    return np.take(_table(stored.dtype), stored.view(bits), mode="clip")


def times(matrix: NDArray[Any], vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """A matrix (rows x columns) of any type times a float64 vector (columns), block by block of rows as they are stored."""
    if matrix.size == 0:
        return np.zeros(matrix.shape[0])
    turned = matrix.flags.f_contiguous and not matrix.flags.c_contiguous
    stored = matrix.T if turned else matrix

    def part(rows: slice) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):  # a NaN in a row is what a check is for
            block = wide(stored[rows])
            product: NDArray[np.float64] = vector[rows] @ block if turned else block @ vector
            return product

    with ThreadPoolExecutor(threads()) as pool:
        parts = list(pool.map(part, row_blocks(stored)))
    return np.sum(parts, axis=0) if turned else np.concatenate(parts)


def row_blocks(matrix: NDArray[Any]) -> Iterator[slice]:
    """Rows of a matrix in blocks whose float64 copies, one a thread, stay within ``SCRATCH_BYTES``."""
    rows = max(1, SCRATCH_BYTES // (8 * threads() * max(1, matrix.shape[1])))
    return (slice(first, first + rows) for first in range(0, matrix.shape[0], rows))


def threads() -> int:
    """How many cores read at a time."""
    return min(MOST_THREADS, len(os.sched_getaffinity(0)))


@cache
def _table(dtype: np.dtype[Any]) -> NDArray[np.float64]:
    bits = np.uint8 if dtype.itemsize == 1 else np.uint16
    with np.errstate(invalid="ignore"):  # signalling NaNs are among them
        return np.arange(np.iinfo(bits).max + 1, dtype=bits).view(dtype).astype(np.float64)
