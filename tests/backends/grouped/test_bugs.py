"""The check catches every planted bug of grouped products, and never an unbroken kernel."""

import pytest

from backends.torch.data import DISTRIBUTIONS
from backends.torch.grouped_gemm.preparing import OTHER_GROUP
from suite.jobs.grouped_gemm import Sizes
from tests.backends.grouped.bugs import BUGS, Bug
from tests.backends.grouped.cases import fresh_verdict, grouped_case, prepared

# Format, scaling, implementation; the first are looked at each time.
WAYS = [
    ("bf16", None, "library"),
    ("fp8_e4m3", "row", "loop"),
    ("fp16", None, "loop"),
    ("fp32", None, "library"),
    ("fp8_e4m3", "block", "loop"),
]
IDS = ["-".join(str(part) for part in way if part) for way in WAYS]
each_way = pytest.mark.parametrize(
    ("format_name", "scaling", "implementation"),
    [*WAYS[:2], *(pytest.param(*way, marks=pytest.mark.thorough) for way in WAYS[2:])],
    ids=IDS,
)
# Few rows, in one group none; a multiple of 16 of each; and many rows in two groups.
RAGGED = Sizes(8, 48, 32, 64, "skewed", top_k=2)
FILLED = RAGGED._replace(alignment=16)
TWO = Sizes(2, 100, 32, 128, "balanced")


def found(bug: Bug, kernel: object, case: object, sizes: Sizes) -> bool:
    """Whether one of two checks fails, each on data of its own: what remembers its first result is right in the first."""
    broken = bug.wrap(kernel, sizes)  # type: ignore[arg-type]
    return any(not fresh_verdict(broken, case, seed).passed for seed in (10, 11))  # type: ignore[arg-type]


def test_the_sizes_are_what_they_are_taken_for() -> None:
    assert RAGGED.rows == (0, 8, 1, 1, 12, 17, 2, 7)
    assert {count % 16 for count in FILLED.stored_rows} == {0}
    assert FILLED.height > 48
    assert len(set(TWO.rows)) == 2


@pytest.mark.parametrize("sizes", [RAGGED, FILLED, TWO], ids=["ragged", "filled up", "two"])
@each_way
def test_each_bug_is_caught(format_name: str, scaling: str | None, implementation: str, sizes: Sizes) -> None:
    if scaling == "block":
        sizes = sizes._replace(n=128, k=128)
    case = grouped_case(implementation, format_name, sizes, scaling=scaling)
    kernel = prepared(case)
    missed = [bug.name for bug in BUGS if bug.applies(sizes, scaling is not None) and not found(bug, kernel, case, sizes)]
    assert missed == []


@pytest.mark.parametrize("distribution", [name for name in DISTRIBUTIONS if name not in ("normal", "zeros", "constant")])
def test_each_bug_is_caught_in_other_data(distribution: str) -> None:
    case = grouped_case("loop", "bf16", RAGGED, distribution=distribution)
    kernel = prepared(case)
    assert [bug.name for bug in BUGS if bug.applies(RAGGED, False) and not found(bug, kernel, case, RAGGED)] == []


# What constant data hide, in the words in which the check says so.
HIDDEN = {
    "wrong group's B": OTHER_GROUP,
    "a boundary row of the neighbour": OTHER_GROUP,
    "an empty group written": OTHER_GROUP,
    "swapped offsets": OTHER_GROUP,
    "rows one further": "operands read in another layout",
    "stale output": "results kept from other data",
}


def test_what_constant_data_hide_is_said_and_all_else_is_caught() -> None:
    case = grouped_case("loop", "bf16", RAGGED, distribution="constant")
    kernel = prepared(case)
    said = kernel.describe()["check_cannot_see"]
    for bug in BUGS:
        if bug.applies(RAGGED, False):
            assert found(bug, kernel, case, RAGGED) is (HIDDEN.get(bug.name) not in said), bug.name


@pytest.mark.parametrize("seeds", [3, pytest.param(100, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("sizes", [RAGGED, FILLED], ids=["ragged", "filled up"])
@each_way
def test_sound_kernels_never_fail(format_name: str, scaling: str | None, implementation: str, sizes: Sizes, seeds: int) -> None:
    case = grouped_case(
        implementation, format_name, sizes._replace(n=128, k=128) if scaling == "block" else sizes, scaling=scaling
    )
    kernel = prepared(case)
    failed = [result.reason for seed in range(seeds) if not (result := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []


@pytest.mark.parametrize("distribution", [name for name in DISTRIBUTIONS if name != "normal"])
def test_sound_kernels_never_fail_on_other_data(distribution: str) -> None:
    case = grouped_case("library", "bf16", RAGGED, distribution=distribution)
    kernel = prepared(case)
    assert all(fresh_verdict(kernel, case, seed).passed for seed in range(5))
