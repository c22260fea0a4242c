"""The check catches every planted bug of attention, and never an unbroken kernel."""

import pytest

from backends.torch import jobs
from backends.torch.attention.kernel import AttentionKernel
from suite.case import Case
from suite.jobs.attention import sizes_of
from tests.backends.attention_bugs import BUGS, WINDOW_BUGS, Bug
from tests.backends.attention_cases import attention_case, fresh_verdict
from tests.backends.cases import any_cpu

WAYS = [
    ("bf16", "forward", "library_flash"),
    ("fp16", "forward", "naive"),
    ("fp8_e4m3", "forward", "naive"),
    ("bf16", "backward", "naive"),
    ("fp16", "backward", "library_flash"),
]
IDS = ["-".join(way) for way in WAYS]
MASKLESS = ("wrong scale of the scores", "dropped tail of keys")
LONG = 2048
SOUND_SEEDS = [20, pytest.param(50, marks=pytest.mark.thorough)]


def prepared(case: Case, sets: int = 1) -> AttentionKernel:
    kernel = jobs.prepare(case, any_cpu(), sets, seed=3)
    assert isinstance(kernel, AttentionKernel)
    return kernel


def found(bug: Bug, case: Case) -> bool:
    """Whether the second of two checks, on data of its own, fails: what remembers its first result is right in the first."""
    kernel = bug.wrap(prepared(case), sizes_of(case.workload))
    verdicts = [fresh_verdict(kernel, case, seed) for seed in (10, 11)]
    return not verdicts[-1].passed


@pytest.mark.parametrize(("format_name", "direction", "implementation"), WAYS, ids=IDS)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_each_bug_is_caught(bug: Bug, format_name: str, direction: str, implementation: str) -> None:
    assert found(bug, attention_case(implementation, format_name, "4/2x64", 1, 160, "causal", direction))


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.name in MASKLESS], ids=lambda bug: bug.name)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_bugs_are_caught_without_a_mask(bug: Bug, direction: str) -> None:
    assert found(bug, attention_case("naive", "bf16", "2x64", 1, 160, "full", direction))


@pytest.mark.parametrize("bug", WINDOW_BUGS, ids=lambda bug: bug.name)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_window_that_is_off_by_one_is_caught(bug: Bug, direction: str) -> None:
    assert found(bug, attention_case("naive", "bf16", "2x64", 1, 160, "sliding_window", direction, window=32))


# What matters less the more keys there are; the other bugs are as large as the result, or are counted.
SMALL = ("mask off by one", "mask one short", "wrong scale of the scores", "dropped tail of keys")


@pytest.mark.parametrize(
    "bug", [pytest.param(bug, id=bug.name, marks=() if bug.name in SMALL else pytest.mark.thorough) for bug in BUGS]
)
def test_each_bug_is_caught_in_a_long_sequence(bug: Bug) -> None:
    """Where a query sees thousands of keys one more or less of them matters least: the first queries then show it."""
    assert found(bug, attention_case("library_flash", "bf16", "2x64", 1, LONG, "causal"))


@pytest.mark.parametrize("mask", ["full", "causal", "sliding_window"])
@pytest.mark.parametrize(("format_name", "direction", "implementation"), WAYS, ids=IDS)
@pytest.mark.parametrize("seeds", SOUND_SEEDS)
def test_sound_kernels_never_fail(format_name: str, direction: str, implementation: str, mask: str, seeds: int) -> None:
    case = attention_case(implementation, format_name, "4/2x64", 1, 128, mask, direction)
    if jobs.reason(case, any_cpu()) is not None:
        pytest.skip("refused, with its reason")
    kernel = prepared(case)
    failed = [result.reason for seed in range(seeds) if not (result := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []


def test_sound_kernels_never_fail_on_long_sequences() -> None:
    """The first rows of a causal mask are many times as large as most: each is judged by its own size."""
    case = attention_case("library_flash", "bf16", "2x64", 1, LONG, "causal")
    kernel = prepared(case)
    failed = [result.reason for seed in range(8) if not (result := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []
