"""The base figures of a device: read, copy and triad over one working set, and a launch with nothing to do.

``bytes`` is the working set of all operands together: one float32 array for read, two for copy, three for triad, each
rounded down to whole elements.  Arrays are matrices of rows x columns.  Read sums each row (every byte once), copy writes
y = x, triad writes a = b + 3 c.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch

from backends.matrix import matrix_shape
from backends.torch.check import project
from backends.torch.data import DISTRIBUTIONS, Operand
from backends.torch.kernel import Formula, InputSet, TorchKernel
from backends.torch.precision import Precision
from backends.torch.target import Target
from suite.case import Case
from suite.errors import nearest

ELEMENT_BYTES = 4
TRIAD_SCALAR = 3.0


class RowSums(Formula):
    """One sum a row (rows x 1)."""

    def tile(self, operands: Sequence[Operand], row: int, column: int, rows: int, columns: int) -> torch.Tensor:
        return operands[0].data[row : row + rows].to(torch.float64).sum(dim=1, keepdim=True)[:, column : column + columns]

    def project(self, operands: Sequence[Operand], vector: torch.Tensor) -> torch.Tensor:
        x = operands[0].data
        return project(x, vector.new_ones(x.shape[1])) * vector[0]


class Weighted(Formula):
    """The sum of the operands, each times its weight, element by element."""

    def __init__(self, *weights: float) -> None:
        self._weights = weights

    def tile(self, operands: Sequence[Operand], row: int, column: int, rows: int, columns: int) -> torch.Tensor:
        return self._sum([each.data[row : row + rows, column : column + columns].to(torch.float64) for each in operands])

    def project(self, operands: Sequence[Operand], vector: torch.Tensor) -> torch.Tensor:
        return self._sum([project(each.data, vector) for each in operands])

    def _sum(self, parts: Sequence[torch.Tensor]) -> torch.Tensor:
        total = parts[0] * self._weights[0]
        for part, weight in zip(parts[1:], self._weights[1:], strict=True):
            total.add_(part, alpha=weight)
        return total


class Nothing(Formula):
    """No output at all."""

    def tile(self, operands: Sequence[Operand], row: int, column: int, rows: int, columns: int) -> torch.Tensor:
        return torch.empty(0, 0, dtype=torch.float64)

    def project(self, operands: Sequence[Operand], vector: torch.Tensor) -> torch.Tensor:
        return torch.empty(0, dtype=torch.float64)


class Operation(NamedTuple):
    """One base figure: how many arrays share the working set, what comes out, and how buffers and launch are made."""

    arrays: int
    formula: Formula
    build: Callable[[tuple[int, int], Target], InputSet]
    call: Callable[[Target], str]


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


def prepare(case: Case, target: Target, sets: int, seed: int) -> TorchKernel:
    """Allocate and fill ``sets`` working sets."""
    operation = OPERATIONS[str(case.workload.param("op"))]
    shape = _shape(int(case.workload.param("bytes")), operation.arrays)
    kernel = TorchKernel(
        [operation.build(shape, target) for _ in range(sets)],
        operation.formula,
        case.workload.distribution,
        "native",
        Precision(),
        {"call": operation.call(target), "rows": shape[0], "columns": shape[1], "reference": "float64"},
    )
    kernel.refill(seed)
    kernel.poison()
    return kernel


def _shape(working_set_bytes: int, arrays: int) -> tuple[int, int]:
    return matrix_shape(max(1, working_set_bytes // (ELEMENT_BYTES * max(1, arrays))))


def _array(shape: tuple[int, int], target: Target) -> Operand:
    return Operand.empty(shape, torch.float32, target.device)


def _output(shape: tuple[int, int], target: Target) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.float32, device=target.device)


def _read_set(shape: tuple[int, int], target: Target) -> InputSet:
    x, sums = _array(shape, target), _output((shape[0], 1), target)
    if _has_triton(target):
        from backends.triton.read import row_sums

        return InputSet((x,), sums, partial(row_sums, x.data, sums.view(-1)))
    return InputSet((x,), sums, partial(torch.sum, x.data, dim=1, keepdim=True, out=sums))


def _copy_set(shape: tuple[int, int], target: Target) -> InputSet:
    x, y = _array(shape, target), _output(shape, target)
    if target.kind == "cuda":
        # In a graph, copy_ becomes a copy node of the driver, which on an H200 moved 2.8 TB/s where a kernel moves 4.3.
        return InputSet((x,), y, partial(torch.mul, x.data, 1.0, out=y))
    return InputSet((x,), y, partial(y.copy_, x.data))


def _triad_set(shape: tuple[int, int], target: Target) -> InputSet:
    b, c, a = _array(shape, target), _array(shape, target), _output(shape, target)
    return InputSet((b, c), a, partial(torch.add, b.data, c.data, alpha=TRIAD_SCALAR, out=a))


def _empty_set(shape: tuple[int, int], target: Target) -> InputSet:
    nothing = _output((0, 0), target)
    if target.kind == "cuda":
        # One thread that reads the clock and ends: the least that torch can launch.
        return InputSet((), nothing, partial(torch.cuda._sleep, 0))
    return InputSet((), nothing, nothing.zero_)


def _has_triton(target: Target) -> bool:
    if target.kind != "cuda":
        return False
    from backends.triton.works import why_not

    return not why_not()


OPERATIONS = {
    "read": Operation(
        1, RowSums(), _read_set, lambda target: "Triton row sums" if _has_triton(target) else "torch.sum by rows"
    ),
    "copy": Operation(
        2, Weighted(1.0), _copy_set, lambda target: "torch.mul by one" if target.kind == "cuda" else "Tensor.copy_"
    ),
    "triad": Operation(3, Weighted(1.0, TRIAD_SCALAR), _triad_set, lambda target: "torch.add with alpha"),
    "empty": Operation(
        0,
        Nothing(),
        _empty_set,
        lambda target: "torch.cuda._sleep(0)" if target.kind == "cuda" else "Tensor.zero_ of an empty tensor",
    ),
}
