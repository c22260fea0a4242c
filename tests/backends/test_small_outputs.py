"""Outputs of a few elements, all of which may be near 0 by chance: right ones pass, wrong ones do not."""

import math
from typing import Any

import pytest
import torch

from backends.torch import jobs
from backends.torch.kernel import TorchKernel
from suite.backend import FEW_ELEMENTS
from suite.case import Case
from suite.measure.verify import probe
from tests.backends.cases import any_cpu, fresh_verdict, gemm_case
from tests.backends.planted_bugs import BUGS, Bug

ROW_SCALES = {"scaling": "row"}
FORMATS: list[tuple[str, dict[str, Any]]] = [
    ("fp64", {}),
    ("fp32", {}),
    ("fp16", {}),
    ("bf16", {}),
    ("fp8_e4m3", {}),
    ("fp8_e4m3", ROW_SCALES),
]


def prepared(case: Case) -> TorchKernel:
    return jobs.prepare(case, any_cpu(), 1, seed=3)


def failures(case: Case, seeds: range = range(100)) -> list[str]:
    kernel = prepared(case)
    return [verdict.reason for seed in seeds if not (verdict := fresh_verdict(kernel, case, seed)).passed]


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (1, 1, 16),
        *(pytest.param(*sizes, marks=pytest.mark.thorough) for sizes in [(1, 1, 1024), (1, 2, 33), (2, 1, 100)]),
        (3, 3, 33),
    ],
)
@pytest.mark.parametrize(("format_name", "semantics"), FORMATS)
def test_sound_products_of_few_elements_never_fail(format_name: str, semantics: dict[str, Any], m: int, n: int, k: int) -> None:
    assert failures(gemm_case(format_name, m, n, k, semantics=semantics)) == []


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 1, 16), *(pytest.param(*sizes, marks=pytest.mark.thorough) for sizes in [(1, 1, 1024), (1, 2, 100)]), (3, 3, 100)],
)
@pytest.mark.parametrize(("format_name", "semantics"), [*FORMATS, ("int8", {})])
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_each_bug_is_caught_by_the_looks_of_one_run(
    bug: Bug, format_name: str, semantics: dict[str, Any], m: int, n: int, k: int
) -> None:
    """One look may meet an element near 0, of which a tenth is nothing; a run looks at two data, before and after."""
    if bug.name == "wrong transpose" and n == 1:
        pytest.skip("one column is stored alike in both orders")
    case = gemm_case(format_name, m, n, k, semantics=semantics)
    kernel = bug.wrap(prepared(case))
    assert not all(fresh_verdict(kernel, case, seed).passed for seed in (11, 12))


@pytest.mark.parametrize(("m", "n"), [(8, 8), (1, 64), (64, 1), (1, 4096), (96, 80)])
def test_nothing_is_expected_of_many_elements(m: int, n: int) -> None:
    kernel = prepared(gemm_case("fp32", m, n, 128))
    assert kernel.reference(probe((m, n), 0, 4, 1)).expected_size == 0.0


@pytest.mark.parametrize(("m", "n"), [(8, 8), (1, FEW_ELEMENTS), (FEW_ELEMENTS, 1)])
def test_many_elements_are_never_all_near_zero(m: int, n: int) -> None:
    """So that from there on they have no need of a size that is expected."""
    kernel = prepared(gemm_case("fp32", m, n, 128))
    smallest = math.inf
    for seed in range(100):
        kernel.refill(seed)
        operands = kernel.input_sets[0].operands
        size = float(kernel.formula.tile(operands, 0, 0, m, n).square().mean().sqrt())
        smallest = min(smallest, size / kernel.formula.expected_size(operands, m, n))
    assert 0.5 < smallest < 1.0


@pytest.mark.parametrize("layout", ["nt", "nn", "tn"])
@pytest.mark.parametrize("format_name", ["fp32", "fp8_e4m3", "int8"])
def test_the_expected_size_is_that_over_all_signs(format_name: str, layout: str) -> None:
    kernel = prepared(gemm_case(format_name, 2, 3, 100, layout=layout))
    operands = kernel.input_sets[0].operands
    a, b = (each.numbers(0, each.data.shape[0]) for each in operands)
    a, b = (a.t() if layout[0] == "t" else a), (b if layout[1] == "n" else b.t())
    signs = torch.randint(0, 2, (4000, 100), generator=torch.Generator().manual_seed(1)).to(torch.float64) * 2 - 1
    drawn = torch.stack([(a * each) @ b for each in signs])
    expected = kernel.formula.expected_size(operands, 2, 3)
    assert expected == pytest.approx(float(drawn.square().mean().sqrt()), rel=0.05)
    assert kernel.reference(probe((2, 3), 0, 4, 1)).expected_size == expected
