"""The base figures touch every byte they say they touch, and their results are checked like any other."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from backends.matrix import MOST_ROWS, matrix_shape, whole_rows
from backends.torch import jobs
from tests.backends.cases import CALL, any_cpu, calibration_case, fresh_verdict, run_all, verdict


@given(st.integers(1, 1 << 34))
def test_a_matrix_holds_exactly_the_elements(elements: int) -> None:
    rows, columns = matrix_shape(elements)
    assert rows * columns == elements
    assert rows <= MOST_ROWS


@given(st.integers(1, 1 << 34))
def test_whole_rows_are_at_most_one_part_in_4096_more(elements: int) -> None:
    rounded = whole_rows(elements)
    assert elements <= rounded <= elements + elements // 4096
    assert matrix_shape(rounded)[0] * matrix_shape(rounded)[1] == rounded


def test_a_third_of_4_gib_is_no_odd_number_of_elements_once_it_is_rounded() -> None:
    assert matrix_shape(2**32 // 12) == (1, 357_913_941)
    assert matrix_shape(whole_rows(2**32 // 12)) == (16384, 21846)


def test_the_usual_sizes_use_many_long_rows() -> None:
    assert matrix_shape(1 << 30) == (16384, 65536)
    assert matrix_shape(3840 * 2**20 // 4) == (16384, 61440)


@pytest.mark.parametrize("size_bytes", [4, 1000, 4096 * 12, 5_000_012])
@pytest.mark.parametrize("op", ["read", "copy", "triad"])
def test_results_pass_and_working_sets_are_of_the_stated_size(op: str, size_bytes: int) -> None:
    case = calibration_case(op, size_bytes)
    assert jobs.reason(case, any_cpu()) is None
    kernel = jobs.prepare(case, any_cpu(), 2, seed=3)
    assert fresh_verdict(kernel, case, seed=4).passed
    arrays = {"read": 1, "copy": 2, "triad": 3}[op]
    touched = kernel.set_bytes - (kernel.input_sets[0].output.nbytes if op == "read" else 0)
    assert touched == max(1, size_bytes // 4 // arrays) * 4 * arrays


@pytest.mark.parametrize("op", ["read", "copy", "triad"])
def test_one_wrong_element_is_caught(op: str) -> None:
    case = calibration_case(op, 3 * 4096 * 64)
    kernel = jobs.prepare(case, any_cpu(), 1, seed=3)
    run_all(kernel)
    kernel.input_sets[0].operands[0].data[5, 7] += 64
    assert not verdict(kernel, case).passed


def test_an_empty_launch_has_no_output_and_passes() -> None:
    case = calibration_case("empty", 0, regime=CALL)
    kernel = jobs.prepare(case, any_cpu(), 1, seed=3)
    result = fresh_verdict(kernel, case, seed=4)
    assert result.passed
    assert kernel.output_shape == (0, 0)


def test_triad_is_what_it_says() -> None:
    kernel = jobs.prepare(calibration_case("triad", 1200), any_cpu(), 1, seed=3)
    kernel.enqueue(0)
    b, c = (operand.data for operand in kernel.input_sets[0].operands)
    torch.testing.assert_close(kernel.input_sets[0].output, b + 3 * c)


def test_an_unknown_operation_is_named() -> None:
    assert "did you mean 'triad'" in (jobs.reason(calibration_case("traid", 64), any_cpu()) or "")
