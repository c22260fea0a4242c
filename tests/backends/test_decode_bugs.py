"""The check catches every planted bug of decoding, and never an unbroken kernel."""

import pytest

from backends.torch import jobs
from backends.torch.decode import cache
from suite.case import Case
from suite.jobs.decode import sizes_of
from tests.backends.cases import any_cpu
from tests.backends.decode_bugs import BUGS, MASK_BUGS, Bug
from tests.backends.decode_cases import decode_case, fresh_verdict, prepared

# Format, scaling, implementation.
WAYS = [
    ("bf16", None, "library_flash"),
    ("bf16", None, "naive"),
    ("fp16", None, "naive"),
    ("fp8_e4m3", "tensor", "naive"),
    ("fp8_e4m3", "token", "naive"),
    ("int8", "token", "naive"),
]
IDS = ["-".join(str(part) for part in way if part) for way in WAYS]
LONG = 32_768
SOUND_SEEDS = [25, pytest.param(100, marks=pytest.mark.thorough)]


def found(bug: Bug, case: Case) -> bool:
    """Whether the second of two checks, on data of its own, fails: what remembers its first table is right in the first."""
    kernel = bug.wrap(prepared(case), sizes_of(case.workload))
    verdicts = [fresh_verdict(kernel, case, seed) for seed in (10, 11)]
    return not verdicts[-1].passed


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
@pytest.mark.parametrize(("format_name", "scaling", "implementation"), WAYS, ids=IDS)
def test_each_bug_is_caught(format_name: str, scaling: str | None, implementation: str, bug: Bug) -> None:
    if (bug.scaled and scaling is None) or (bug.reads_pages and implementation != "naive"):
        pytest.skip("has no scales, or no page table, to get wrong")
    for kv_len in (160, 157):  # the last page full, and not
        assert found(bug, decode_case(implementation, format_name, "4/2x64", 3, kv_len, scaling=scaling))


@pytest.mark.parametrize("bug", [bug for bug in BUGS if not bug.scaled], ids=lambda bug: bug.name)
def test_each_bug_is_caught_in_ragged_lengths_with_a_prefix_that_all_share(bug: Bug) -> None:
    assert found(bug, decode_case("naive", "bf16", "8/2x64", 5, 200, lengths="uniform", shared_prefix=32))


@pytest.mark.parametrize("bug", [bug for bug in BUGS if not bug.scaled and "another" not in bug.name], ids=lambda bug: bug.name)
def test_each_bug_is_caught_in_mla(bug: Bug) -> None:
    assert found(bug, decode_case("naive", "bf16", "8/1x96/64", 3, 150))


@pytest.mark.parametrize("bug", MASK_BUGS, ids=lambda bug: bug.name)
@pytest.mark.parametrize(
    ("format_name", "scaling", "heads"),
    [
        pytest.param("bf16", None, "2x64", marks=pytest.mark.thorough),
        ("bf16", None, "8/1x128"),
        pytest.param("bf16", None, "16/1x288/256", marks=pytest.mark.thorough),
        ("int8", "token", "8/1x128"),
        pytest.param("fp8_e4m3", "tensor", "8/1x128", marks=pytest.mark.thorough),
    ],
)
def test_one_key_more_or_less_is_caught_in_a_long_sequence(format_name: str, scaling: str | None, heads: str, bug: Bug) -> None:
    for kv_len in (LONG, LONG - 5):
        assert found(bug, decode_case("naive", format_name, heads, 1, kv_len, scaling=scaling))


@pytest.mark.parametrize("bug", MASK_BUGS, ids=lambda bug: bug.name)
@pytest.mark.parametrize("distribution", ["uniform", "integer"])
def test_one_key_more_or_less_is_caught_in_other_data(distribution: str, bug: Bug) -> None:
    assert found(bug, decode_case("naive", "bf16", "4/2x128", 2, 4096, distribution=distribution))


def test_what_outliers_hide_is_said() -> None:
    """Their scores leave an ordinary key no weight: one too many shows, one too few does not."""
    case = decode_case("naive", "bf16", "4/2x128", 2, 4096, distribution="outliers")
    assert {bug.name: found(bug, case) for bug in MASK_BUGS} == {"one key too many": True, "one key too few": False}
    assert "single keys left out" in prepared(case).describe()["check_cannot_see"]


def test_without_keys_like_queries_one_key_less_would_be_lost_in_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the latest keys are for."""
    monkeypatch.setattr(cache, "meeting_columns", lambda sizes, distribution: 0)
    one_less = next(bug for bug in MASK_BUGS if bug.name == "one key too few")
    assert not found(one_less, decode_case("naive", "bf16", "8/1x128", 1, LONG))


@pytest.mark.parametrize("bug", MASK_BUGS, ids=lambda bug: bug.name)
def test_a_mask_over_several_new_tokens_that_is_off_is_caught(bug: Bug) -> None:
    assert found(bug, decode_case("naive", "bf16", "4/2x64", 2, 2048, q_len=4))


@pytest.mark.parametrize("more", [{}, {"lengths": "skewed", "q_len": 2}, {"shared_prefix": 32, "heads": "4/1x96/64"}], ids=str)
@pytest.mark.parametrize(("format_name", "scaling", "implementation"), WAYS, ids=IDS)
@pytest.mark.parametrize("seeds", SOUND_SEEDS)
def test_sound_kernels_never_fail(format_name: str, scaling: str | None, implementation: str, more: dict, seeds: int) -> None:
    case = decode_case(implementation, format_name, batch=3, kv_len=90, scaling=scaling, **more)
    if jobs.reason(case, any_cpu()) is not None:
        pytest.skip("refused, with its reason")
    kernel = prepared(case)
    failed = [result.reason for seed in range(seeds) if not (result := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []


def test_sound_kernels_never_fail_on_long_sequences() -> None:
    case = decode_case("library_flash", "bf16", "4/1x128", 1, LONG)
    kernel = prepared(case)
    failed = [result.reason for seed in range(8) if not (result := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []
