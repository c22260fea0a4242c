"""The check catches every planted bug in every format, and never an unbroken kernel."""

import pytest

from backends.torch import jobs
from backends.torch.data import DISTRIBUTIONS
from tests.backends.cases import CPU_FORMATS, any_cpu, fresh_verdict, gemm_case
from tests.backends.grid import grid
from tests.backends.planted_bugs import BUGS, TILE, Bug


@pytest.mark.parametrize("layout", ["nt", "nn"])
@pytest.mark.parametrize("format_name", CPU_FORMATS)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_each_bug_is_caught(bug: Bug, format_name: str, layout: str) -> None:
    case = gemm_case(format_name, 160, 144, 512, layout=layout)
    kernel = bug.wrap(jobs.prepare(case, any_cpu(), 2, seed=3))
    assert not any(fresh_verdict(kernel, case, seed).passed for seed in (10, 11))


# What a tolerance could grow past; the other bugs are as large as the result, or are counted.
SMALL = ("wrong scale", "truncated K")


# Of fp64 the reference takes seconds; how wide its tolerance is at any K the sound kernels and the small K show.
@grid("bug, format_name", BUGS, CPU_FORMATS, few=lambda bug, format_name: bug.name in SMALL and format_name != "fp64")
def test_each_bug_is_caught_at_a_large_k(bug: Bug, format_name: str) -> None:
    """Tolerances grow with K; they must not grow past the bugs."""
    case = gemm_case(format_name, 96, 80, 16384)
    kernel = bug.wrap(jobs.prepare(case, any_cpu(), 2, seed=3))
    assert not [fresh_verdict(kernel, case, seed) for seed in (10, 11)][-1].passed


# What a bug does, in the words in which the check says what it cannot see.
DOES = {
    "wrong transpose": "operands read in another layout",
    "stale output": "results kept from other data",
    "wrong scale": "a wrong scale",
    "truncated K": "terms left out",
}


@pytest.mark.parametrize("distribution", [name for name in DISTRIBUTIONS if name != "normal"])
@pytest.mark.parametrize("format_name", CPU_FORMATS)
def test_what_a_check_cannot_see_is_said_and_all_else_is_caught(format_name: str, distribution: str) -> None:
    case = gemm_case(format_name, 96, 80, 128, distribution=distribution)
    for bug in BUGS:
        kernel = jobs.prepare(case, any_cpu(), 1, seed=3)
        said = DOES.get(bug.name) in kernel.describe()["check_cannot_see"]
        broken = bug.wrap(kernel)
        verdicts = [fresh_verdict(broken, case, seed) for seed in (10, 11)]
        unseen = said or (distribution == "zeros" and bug.name == "destroyed input")  # zeros in place of zeros are no fault
        assert verdicts[-1].passed is unseen, (bug.name, verdicts[-1].reason)


@pytest.mark.parametrize("format_name", CPU_FORMATS)
def test_on_zeros_an_element_that_was_never_written_still_shows(format_name: str) -> None:
    case = gemm_case(format_name, 96, 80, 128, distribution="zeros")
    bug = next(bug for bug in BUGS if bug.name == "unwritten tile")
    result = fresh_verdict(bug.wrap(jobs.prepare(case, any_cpu(), 1, seed=3)), case, seed=4)
    assert not result.passed
    assert result.unwritten == TILE * TILE


def test_normal_data_hides_nothing() -> None:
    assert jobs.prepare(gemm_case("bf16", 8, 8, 8), any_cpu(), 1, seed=3).describe()["check_cannot_see"] == []


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.name != "unwritten tile"], ids=lambda bug: bug.name)
def test_each_bug_is_caught_within_the_tolerance_of_fp16_sums(bug: Bug) -> None:
    """The widest tolerance there is, at a K that makes it wide."""
    case = gemm_case("fp16", 96, 80, 16384, switches={"fp16_accumulation": True, "reduced_precision_reduction": True})
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
