"""What a check sees of stages, and whether inputs were changed: on stages whose defects are known."""

import math

import pytest
import torch

from backends.torch.check import poison
from backends.torch.decode_step.changes import fingerprint
from backends.torch.decode_step.stages import COLUMNS, Stage, block_sizes, observed, output_shape, reference
from suite.backend import Probe
from suite.measure.verify import judge

ROWS, WIDTH = 3, 300  # three blocks a row, the last of 44 numbers
HEIGHT = 5


def stage(defect: torch.Tensor | float = 0.0, counts: float = 1.0, size: float = 2.0) -> Stage:
    """Numbers of one size and of either sign, found with a defect."""
    signs = torch.randint(0, 2, (ROWS, WIDTH), generator=torch.Generator().manual_seed(1)).double() * 2 - 1
    exact = size * signs
    return Stage("one", (exact + defect).to(torch.float32), lambda rows, columns, on: exact[rows, columns].to(on), counts)


def at(row: int, column: int, amount: float) -> torch.Tensor:
    defect = torch.zeros(ROWS, WIDTH, dtype=torch.float64)
    defect[row, column] = amount
    return defect


def probe(row: int = 0) -> Probe:
    return Probe(0, ((row, 0, HEIGHT, 64),), 3)


def verdict(stages: list[Stage], tolerance: float, changed: bool = False, row: int = 0) -> str:
    shape = output_shape(stages)
    found = judge(observed(stages, probe(row), changed), reference(probe(row), shape), tolerance, shape[1])
    return "" if found.passed else found.reason


def test_blocks_are_counted_row_by_row_with_one_behind_all() -> None:
    assert output_shape([stage()]) == (3 * 3 + 1, COLUMNS)
    assert output_shape([stage(), stage()]) == (2 * 3 * 3 + 1, COLUMNS)


def test_no_defect_is_zero_everywhere() -> None:
    seen = observed([stage(), stage()], probe(), changed=False)
    assert not seen.projection.any()
    assert not seen.tiles[0].any()
    assert verdict([stage()], 1e-12) == ""


@pytest.mark.parametrize(("row", "column", "block"), [(0, 0, 0), (0, 200, 1), (1, 299, 5), (2, 130, 7)])
def test_a_defect_shows_in_its_block_in_units_of_the_blocks_size(row: int, column: int, block: int) -> None:
    projection = observed([stage(), stage(at(row, column, 0.5))], probe(), changed=False).projection
    (place,) = projection.nonzero()[0]
    assert place == 9 + block
    assert abs(projection[place]) == pytest.approx(0.5 / 2.0)


def test_a_tile_shows_the_same_defect_where_it_lies() -> None:
    """Row 2 of a tile that begins at block 3 is block 5: the last of the second row."""
    seen = observed([stage(at(1, 256 + 7, -1.0))], probe(3), changed=False)
    assert seen.tiles[0][2, 7] == pytest.approx(-0.5)
    assert (seen.tiles[0] != 0).sum() == 1


def test_defects_count_as_often_as_a_stage_may_be_off_by_less() -> None:
    assert verdict([stage(0.02, counts=1.0)], 0.0101) == ""
    assert "above the tolerance" in verdict([stage(0.02, counts=2.0)], 0.0101)


def test_small_blocks_are_held_to_the_size_of_the_others() -> None:
    exact = torch.ones(1, 3 * COLUMNS, dtype=torch.float64)
    exact[0, :COLUMNS] = 1e-9
    assert block_sizes(exact).tolist() == [[1.0, 1.0, 1.0]]
    assert block_sizes(torch.zeros(1, COLUMNS, dtype=torch.float64)).tolist() == [[1.0]]


def test_the_last_block_of_a_row_has_the_size_of_its_own_numbers() -> None:
    exact = torch.full((1, COLUMNS + 8), 3.0, dtype=torch.float64)
    assert block_sizes(exact).tolist() == [[3.0, 3.0]]


def test_changed_inputs_are_a_defect_as_large_as_a_block() -> None:
    seen = observed([stage()], probe(), changed=True)
    assert seen.projection[-1] == math.sqrt(COLUMNS)
    assert "wrong outside the sampled tiles" in verdict([stage()], 0.1, changed=True)


def test_what_was_not_written_is_counted() -> None:
    broken = stage()
    poison(broken.found)
    assert "900 elements never written" in verdict([broken, stage()], 1.0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.int32, torch.uint8])
@pytest.mark.parametrize("size", [(64,), (7, 3), (1,)])
def test_a_fingerprint_depends_on_every_number_and_its_place(dtype: torch.dtype, size: tuple[int, ...]) -> None:
    numbers = torch.arange(1, math.prod(size) + 1).view(size).to(dtype)
    before = fingerprint([numbers])
    assert fingerprint([numbers.clone()]) == before
    for place in range(numbers.numel()):
        other = numbers.clone().view(-1)
        other[place] += 1
        assert fingerprint([other.view(size)]) != before
    if numbers.numel() > 1:
        assert fingerprint([numbers.view(-1).flip(0)]) != before
    assert fingerprint([numbers, numbers + 1]) != fingerprint([numbers + 1, numbers])


def test_a_fingerprint_goes_through_more_words_than_are_looked_at_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backends.torch.decode_step.changes.WORDS", 8)
    numbers = torch.arange(100, dtype=torch.int64)
    seen = {fingerprint([numbers])}
    for place in range(100):
        other = numbers.clone()
        other[place] += 1
        seen.add(fingerprint([other]))
    assert len(seen) == 101
    swapped = numbers.clone()
    swapped[[0, 8]] = numbers[[8, 0]]
    assert fingerprint([swapped]) not in seen
