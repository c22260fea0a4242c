"""Weights in the order of the kernel of few rows: every code once, where the kernel looks for it; padding is zeros."""

import pytest
import torch

from backends.torch.quantise.packing import unpack
from backends.triton.quantised.few_rows import order
from backends.triton.quantised.few_rows.order import ROW_MULTIPLE, Ordered, in_blocks, ordered
from tests.backends.triton.few_rows.codes import codes_in, of_rows
from tests.backends.triton.test_prepack import codes_of, weights


def test_every_code_stands_where_the_kernel_looks_for_it() -> None:
    codes = torch.randint(0, 16, (48, 2560), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    words = in_blocks(ordered(codes))
    assert words.shape == (2, 3, 16 * 512)
    assert torch.equal(codes_in(words, 48, 2560), codes)


def test_first_groups_of_four_strips_follow_each_other() -> None:
    codes = torch.zeros(16, 4096, dtype=torch.uint8)
    for strip in range(8):
        codes[:, 512 * strip : 512 * strip + 128] = strip + 1
    words = in_blocks(ordered(codes)).view(2, 16, 512)
    assert [sorted({int(nibble) for nibble in unpack(group.view(torch.uint8)[None], 4)[0]}) for group in words[1, :5]] == [
        [5], [6], [7], [8], [0]
    ]  # fmt: skip


def test_sixteen_bytes_of_a_lane_follow_each_other() -> None:
    """Row 0, numbers 0, 1, 4, 5, 32, ... of a group are the first of a lane's eight words."""
    codes = torch.zeros(16, 128, dtype=torch.uint8)
    codes[0, [0, 1, 4, 5, 32, 33, 36, 37]] = torch.arange(1, 9, dtype=torch.uint8)
    assert ordered(codes)[0, 0, :8].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("zero_point", [False, True])
@pytest.mark.parametrize("rows", [1, 37, 64, 80])
def test_filled_buffers_hold_what_the_weights_hold(rows: int, zero_point: bool) -> None:
    quantised = weights("w4a16", zero_point, rows=rows)
    made = Ordered.empty(quantised)
    made.fill()
    padded = 16 * made.tiles
    assert padded == rows + -rows % ROW_MULTIPLE
    whole = codes_in(made.words, padded, 384)
    assert torch.equal(whole[:rows], codes_of(quantised))
    assert not whole[rows:].any()
    assert torch.equal(of_rows(made.scales, rows, 3), quantised.scales)
    assert not of_rows(made.scales, padded, 4)[rows:].any()
    assert (made.zero_points is not None) == zero_point
    if zero_point:
        assert quantised.zero_points is not None
        assert made.zero_points is not None
        assert torch.equal(of_rows(made.zero_points, rows, 3), quantised.zero_points.to(torch.int16))


def test_a_matrix_is_moved_in_parts_that_are_whole_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    quantised = weights("w4a16", zero_point=False, rows=100)
    at_once, in_parts = Ordered.empty(quantised), Ordered.empty(quantised)
    at_once.fill()
    monkeypatch.setattr(order, "CHUNK_CODES", 20 * 384)
    in_parts.fill()
    assert torch.equal(at_once.words, in_parts.words)
