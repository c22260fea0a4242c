"""The example's kernels against their own check: right as they are, and caught with every planted bug.

It is what writers of plugins copy; a check that passes a wrong kernel is no check.
"""

from collections.abc import Callable

import numpy as np
import pytest

from suite.case import Case, Regime, Workload, items
from suite.jobs.calibration import CalibrationJob
from suite.measure.verify import check, expect, probe
from tests.plugins.installed import EXAMPLE

M, K = 200, 96
COLD = Regime("cold", "sustained", "device")


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))


def prepared(workload: Workload, implementation: str = "library"):
    from roofbench_example.operations import prepare

    return prepare(Case(workload, implementation, "numpy", COLD), sets=2, seed=3)


def product(format_name: str) -> Workload:
    return Workload("matvec", format_name, items({"m": M, "k": K}))


def verdict(kernel, tolerance: float, spoil: Callable = lambda operands, output: None, launch: bool = True):
    """Every set is looked at, after its launch and what ``spoil`` does to its output."""

    def run() -> None:
        for index in range(kernel.sets):
            if launch:
                kernel.enqueue(index)
            spoil(kernel._input_sets[index].operands, kernel._input_sets[index].output)

    probes = [probe(kernel.output_shape, index, 4, seed=7 + index) for index in range(kernel.sets)]
    return check(kernel, expect(kernel, probes), tolerance, run)


@pytest.mark.parametrize("implementation", ["library", "einsum"])
@pytest.mark.parametrize("format_name", ["fp64", "fp32"])
def test_products_are_right_also_on_fresh_data(format_name: str, implementation: str) -> None:
    from roofbench_example.matvec import MatvecJob

    workload = product(format_name)
    kernel, tolerance = prepared(workload, implementation), MatvecJob().tolerance(workload, ())
    assert verdict(kernel, tolerance).passed
    kernel.refill(11)
    after = verdict(kernel, tolerance)
    assert after.passed, after.reason
    assert kernel.set_bytes == MatvecJob().work(workload).compulsory_bytes


@pytest.mark.parametrize("operation", ["read", "copy", "triad", "empty"])
def test_base_figures_are_right(operation: str) -> None:
    size = 0 if operation == "empty" else 3 * 4 * 4096 * 21
    workload = Workload("calibration", "fp32", items({"op": operation, "bytes": size}))
    kernel = prepared(workload)
    found = verdict(kernel, CalibrationJob().tolerance(workload, ()))
    assert found.passed, found.reason
    extra = kernel.output_shape[0] * 4 if operation == "read" else 0  # sums of rows, which the work leaves out
    assert kernel.set_bytes - extra == pytest.approx(CalibrationJob().work(workload).compulsory_bytes, rel=0.05)


def one_row(operands, output) -> None:
    output[M // 3] *= 1.001


def last_column(operands, output) -> None:
    output[:, 0] -= operands[0][:, -1] * operands[1][-1]


def rows_swapped(operands, output) -> None:
    output[[5, 6]] = output[[6, 5]]


def not_a_number(operands, output) -> None:
    output[17] = np.nan


def row_unwritten(operands, output) -> None:
    bits = {4: (np.uint32, 0x7FC5EED5), 8: (np.uint64, 0x7FF85EED5EED5EED)}[output.itemsize]
    output.view(bits[0])[3] = bits[1]


def in_half(operands, output) -> None:
    """As if the sums were kept in 16 bits."""
    output[:] = output.astype(np.float16)


BUGS = (one_row, last_column, rows_swapped, not_a_number, row_unwritten, in_half)


@pytest.mark.parametrize("spoil", BUGS, ids=lambda bug: bug.__name__)
@pytest.mark.parametrize("format_name", ["fp64", "fp32"])
def test_planted_bugs_are_caught(format_name: str, spoil: Callable) -> None:
    from roofbench_example.matvec import MatvecJob

    workload = product(format_name)
    assert not verdict(prepared(workload), MatvecJob().tolerance(workload, ()), spoil).passed


def test_a_kernel_that_does_nothing_is_caught() -> None:
    found = verdict(prepared(product("fp32")), 1.0, launch=False)
    assert not found.passed
    assert found.unwritten == M
