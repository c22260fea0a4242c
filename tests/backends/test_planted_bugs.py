"""The check catches every planted bug in every format, and never an unbroken kernel."""

import pytest

from backends.torch import jobs
from tests.backends.cases import CPU_FORMATS, any_cpu, fresh_verdict, gemm_case
from tests.backends.planted_bugs import BUGS, TILE, Bug


@pytest.mark.parametrize("layout", ["nt", "nn"])
@pytest.mark.parametrize("format_name", CPU_FORMATS)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_each_bug_is_caught(bug: Bug, format_name: str, layout: str) -> None:
    case = gemm_case(format_name, 160, 144, 512, layout=layout)
    kernel = bug.wrap(jobs.prepare(case, any_cpu(), 2, seed=3))
    verdicts = [fresh_verdict(kernel, case, seed) for seed in (10, 11)]
    assert not verdicts[-1].passed


@pytest.mark.parametrize("format_name", CPU_FORMATS)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_each_bug_is_caught_at_a_large_k(bug: Bug, format_name: str) -> None:
    """Tolerances grow with K; they must not grow past the bugs."""
    case = gemm_case(format_name, 96, 80, 16384)
    kernel = bug.wrap(jobs.prepare(case, any_cpu(), 2, seed=3))
    assert not [fresh_verdict(kernel, case, seed) for seed in (10, 11)][-1].passed


@pytest.mark.parametrize("format_name", CPU_FORMATS)
def test_sound_kernels_never_fail(format_name: str) -> None:
    case = gemm_case(format_name, 96, 80, 256)
    kernel = jobs.prepare(case, any_cpu(), 1, seed=3)
    failed = [result.reason for seed in range(200) if not (result := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []


def test_an_unwritten_tile_is_counted_element_by_element() -> None:
    case = gemm_case("bf16", 160, 144, 64)
    bug = next(bug for bug in BUGS if bug.name == "unwritten tile")
    result = fresh_verdict(bug.wrap(jobs.prepare(case, any_cpu(), 1, seed=3)), case, seed=4)
    assert (result.unwritten, result.nonfinite) == (TILE * TILE, 0)
