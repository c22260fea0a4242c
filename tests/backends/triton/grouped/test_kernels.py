"""The grouped kernels computing in Triton's interpreter: groups of every size, and bugs that must be caught."""

from typing import Any

import pytest

from tests.backends.triton import apart
from tests.backends.triton.grouped.interpreted import BROKEN, LISTED, SOUND, Spec
from tests.backends.triton.test_kernels import pytestmark as needs_an_interpreter

pytestmark = needs_an_interpreter


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """One process for all: whether Triton interprets is decided when it is imported."""
    printed: dict[str, Any] = apart.interpreted("tests.backends.triton.grouped.interpreted")
    return printed


@pytest.mark.parametrize("spec", SOUND, ids=lambda spec: spec.name)
def test_matches_the_reference(found: dict[str, Any], spec: Spec) -> None:
    verdict = found["verdicts"][spec.name]
    assert verdict["passed"], verdict["reason"]


@pytest.mark.parametrize("spec", BROKEN, ids=lambda spec: spec.name)
def test_a_planted_bug_is_caught(found: dict[str, Any], spec: Spec) -> None:
    verdict = found["verdicts"][spec.name]
    assert not verdict["passed"]
    assert verdict["reason"]


def test_both_kernels_were_tried(found: dict[str, Any]) -> None:
    loads = {name: verdict["loads"] for name, verdict in found["verdicts"].items()}
    assert loads["fp16 ragged"] == "tensor descriptors"
    assert loads["fp16 ragged, pointers"] == "pointers: sm_89 has no tensor descriptors"
    assert loads["fp16 odd"] == "pointers: rows of A have 70 bytes, no multiple of 16"


def test_nothing_is_written_in_front_of_c_or_behind_it(found: dict[str, Any]) -> None:
    """A descriptor that clips at a group's end leaves alone what the next rows are, in the last group too."""
    assert found["strays"] == {
        name: {"beside": 0, "unwritten": 0} for name in ("sm_90, 1", "sm_90, 2", "sm_89, 1")
    }  # fmt: skip


def by_hand(rows: tuple[int, ...], block_m: int) -> list[list[int]]:
    """Group and first row of each tile, group by group."""
    starts = [sum(rows[:group]) for group in range(len(rows))]
    return [[group, starts[group] + first] for group, count in enumerate(rows) for first in range(0, count, block_m)]


@pytest.mark.parametrize("place", range(len(LISTED)))
def test_the_list_has_every_tile_of_each_group_and_none_of_two(found: dict[str, Any], place: int) -> None:
    rows, block_m = LISTED[place]
    count, *numbers = found["lists"][place]["list"]
    tiles = by_hand(rows, block_m)
    assert count == len(tiles)
    assert [numbers[at : at + 2] for at in range(0, 2 * count, 2)] == tiles
    assert set(numbers[2 * count :]) <= {-1}, "what is behind the list is left alone"
