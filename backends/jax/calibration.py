"""The base figures of a device through XLA: read, copy and triad over one working set, and a program with nothing to do.

Read sums each row, copy writes y = s x, triad writes a = b + s c: with s an argument, so that the compiler can neither
leave a multiplication by one out nor take the result for its input.  A third of 4 GiB is an odd number of elements, which XLA
does not vectorise: arrays are rounded up to whole rows, by at most one part in 4096, and what that moves more is not counted.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from backends.jax.data import DISTRIBUTIONS, Operand
from backends.jax.kernel import Formula, Plan, XlaKernel
from backends.jax.target import Target
from backends.jax.widening import times, wide
from backends.matrix import matrix_shape, whole_rows
from suite.case import Case
from suite.errors import nearest

ELEMENT_BYTES = 4
TRIAD_SCALAR = 3.0


class RowSums(Formula):
    """One sum a row (rows x 1)."""

    def tile(self, operands: Sequence[Operand], row: int, column: int, rows: int, columns: int) -> NDArray[np.float64]:
        part = wide(np.asarray(operands[0].data[row : row + rows]))
        sums: NDArray[np.float64] = part.sum(axis=1, keepdims=True)
        return sums[:, column : column + columns]

    def project(self, operands: Sequence[Operand], vector: NDArray[np.float64]) -> NDArray[np.float64]:
        stored = np.asarray(operands[0].data)
        sums = times(stored, np.ones(stored.shape[1]))
        return sums * float(vector[0])


class Weighted(Formula):
    """The sum of the operands, each times its weight, element by element."""

    def __init__(self, *weights: float) -> None:
        self._weights = weights

    def tile(self, operands: Sequence[Operand], row: int, column: int, rows: int, columns: int) -> NDArray[np.float64]:
        window = (slice(row, row + rows), slice(column, column + columns))
        return self._sum([wide(np.asarray(each.data[window])) for each in operands])

    def project(self, operands: Sequence[Operand], vector: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._sum([times(np.asarray(each.data), vector) for each in operands])

    def _sum(self, parts: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        return sum((weight * part for weight, part in zip(self._weights, parts, strict=True)), np.zeros_like(parts[0]))


class Operation(NamedTuple):
    """How many arrays share the working set, what comes out of ``operands`` of them, and how."""

    arrays: int
    operands: int
    formula: Formula
    compute: Callable[..., jax.Array]
    scalars: tuple[float, ...]
    call: str


def _sums(x: jax.Array) -> jax.Array:
    return jnp.sum(x, axis=1, keepdims=True)


OPERATIONS = {
    "read": Operation(1, 1, RowSums(), _sums, (), "jnp.sum by rows"),
    "copy": Operation(2, 1, Weighted(1.0), lambda x, s: x * s, (1.0,), "x * s, s = 1"),
    "triad": Operation(3, 2, Weighted(1.0, TRIAD_SCALAR), lambda b, c, s: b + s * c, (TRIAD_SCALAR,), "b + s * c, s = 3"),
    # The least that a program can do: the copy of one element.
    "empty": Operation(2, 1, Weighted(1.0), lambda x, s: x * s, (1.0,), "x * s of one element, s = 1"),
}


def reason(case: Case, target: Target) -> str | None:
    """Why this case cannot run; ``None`` when it can."""
    workload = case.workload
    if case.implementation != "library":
        return f"calibration has no implementation {case.implementation!r}, only 'library'"
    if workload.format != "fp32":
        return f"calibration is defined for fp32, not {workload.format}"
    if workload.distribution not in DISTRIBUTIONS:
        return f"calibration has no distribution {workload.distribution!r}{nearest(workload.distribution, DISTRIBUTIONS)}"
    operation = str(workload.param("op"))
    return None if operation in OPERATIONS else f"calibration has no op {operation!r}{nearest(operation, OPERATIONS)}"


def prepare(case: Case, target: Target, sets: int, seed: int) -> XlaKernel:
    """Draw ``sets`` working sets and compile the operation."""
    op = str(case.workload.param("op"))
    description: dict[str, Any] = {"execution": "native", "call": OPERATIONS[op].call}
    plan = plan_of(op, int(case.workload.param("bytes")))
    return XlaKernel(plan, sets, seed, case.workload.distribution, lambda text: description)


def plan_of(op: str, size_bytes: int) -> Plan:
    """Shapes and computation of an operation over a working set."""
    operation = OPERATIONS[op]
    shape = matrix_shape(whole_rows(max(1, size_bytes // (ELEMENT_BYTES * operation.arrays))))
    return Plan(
        operands=((shape, jnp.float32),) * operation.operands,
        output=((shape[0], 1) if operation.operands == operation.arrays else shape, jnp.float32),
        compute=operation.compute,
        formula=operation.formula,
        scalars=operation.scalars,
    )
