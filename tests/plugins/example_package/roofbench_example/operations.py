"""What the backend computes: the products of the job ``matvec``, and the base figures that every device is calibrated by.

A backend that leaves calibration out has results without a bound and without an empirical roof.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from roofbench_example.kernel import Array, InputSet, NumpyKernel
from suite.case import Case, Workload

DTYPES = {"fp64": np.dtype(np.float64), "fp32": np.dtype(np.float32)}
ROW_ELEMENTS = 4096
TRIAD_SCALAR = np.float32(3.0)
TRIAD_ROWS = 8  # numpy multiplies and adds in two passes: the second over 128 KiB finds them in a cache


def prepare(case: Case, sets: int, seed: int) -> NumpyKernel:
    """Allocate and fill ``sets`` input sets of a case that is supported."""
    make = _matvec if case.workload.job == "matvec" else _calibration
    kernel = make(case, sets)
    kernel.refill(seed)
    kernel.poison()
    return kernel


def _matvec(case: Case, sets: int) -> NumpyKernel:
    call = "numpy.matmul" if case.implementation == "library" else "numpy.einsum"
    return NumpyKernel([_product(case.workload, call) for _ in range(sets)], _product_rows, {"call": call})


def _product(workload: Workload, call: str) -> InputSet:
    m, k, dtype = workload.param("m"), workload.param("k"), DTYPES[workload.format]
    a, x, y = np.empty((m, k), dtype), np.empty(k, dtype), np.empty((m, 1), dtype)
    product = np.matmul if call == "numpy.matmul" else partial(np.einsum, "mk,k->m")
    return InputSet((a, x), y, partial(product, a, x, out=y[:, 0]))


def _product_rows(operands: Sequence[Array], rows: slice) -> Array:
    a, x = operands
    return (a[rows].astype(np.float64) @ x.astype(np.float64))[:, None]


def _calibration(case: Case, sets: int) -> NumpyKernel:
    operation = OPERATIONS[str(case.workload.param("op"))]
    elements = case.workload.param("bytes") // (4 * max(1, operation.arrays))
    made = [operation.build(elements // ROW_ELEMENTS) for _ in range(sets)]
    return NumpyKernel(made, operation.rows_of, {"call": operation.call})


def _array(rows: int, columns: int = ROW_ELEMENTS) -> Array:
    return np.empty((rows, columns), np.float32)


def _read(rows: int) -> InputSet:
    x, sums = _array(rows), _array(rows, 1)
    return InputSet((x,), sums, partial(np.sum, x, axis=1, keepdims=True, out=sums))


def _copy(rows: int) -> InputSet:
    x, y = _array(rows), _array(rows)
    return InputSet((x,), y, partial(np.copyto, y, x))


def _triad(rows: int) -> InputSet:
    b, c, a = _array(rows), _array(rows), _array(rows)
    blocks = [
        (b[row : row + TRIAD_ROWS], c[row : row + TRIAD_ROWS], a[row : row + TRIAD_ROWS]) for row in range(0, rows, TRIAD_ROWS)
    ]

    def launch() -> None:
        for b_part, c_part, a_part in blocks:
            np.multiply(c_part, TRIAD_SCALAR, out=a_part)
            np.add(a_part, b_part, out=a_part)

    return InputSet((b, c), a, launch)


def _empty(rows: int) -> InputSet:
    nothing = _array(0, 0)
    return InputSet((), nothing, partial(np.copyto, nothing, nothing))


def _wide(operand: Array, rows: slice) -> Array:
    return operand[rows].astype(np.float64)


class Operation(NamedTuple):
    """A base figure: how many arrays share the working set, how one set is built, and what rows of its output should be."""

    arrays: int
    build: Callable[[int], InputSet]
    rows_of: Callable[[Sequence[Array], slice], Array]
    call: str


OPERATIONS = {
    "read": Operation(1, _read, lambda each, rows: _wide(each[0], rows).sum(axis=1, keepdims=True), "numpy.sum by rows"),
    "copy": Operation(2, _copy, lambda each, rows: _wide(each[0], rows), "numpy.copyto"),
    "triad": Operation(3, _triad, lambda each, rows: _wide(each[0], rows) + 3.0 * _wide(each[1], rows), "numpy.multiply, add"),
    "empty": Operation(0, _empty, lambda each, rows: np.empty((0, 0)), "numpy.copyto of nothing"),
}
