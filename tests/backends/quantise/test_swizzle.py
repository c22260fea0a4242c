"""Scales in tiles of 128 x 4."""

import json
from pathlib import Path

import pytest
import torch

from backends.torch.quantise.swizzle import swizzle, swizzled_bytes, unswizzle

TOLD = json.loads((Path(__file__).parents[2] / "data/number_formats/swizzled_offsets.json").read_text())


def marked(rows: int, blocks: int, row: int, block: int) -> torch.Tensor:
    scales = torch.zeros(rows, blocks, dtype=torch.uint8)
    scales[row, block] = 1
    return scales


@pytest.mark.parametrize("told", TOLD["nvmath"], ids=str)
def test_places_as_nvidia_gives_them(told: dict[str, int]) -> None:
    """An operand of 128 x 128 in blocks of 16."""
    line = swizzle(marked(128, 8, told["row"], told["block"]))
    assert line.nonzero().tolist() == [[told["offset"]]]


def test_rows_of_a_tile_in_the_order_that_nvidia_gives() -> None:
    rows = torch.arange(128, dtype=torch.uint8)[:, None].expand(128, 4)
    order = swizzle(rows).view(128, 4)[:, 0].tolist()
    assert order[:8] == TOLD["row_order"]
    assert order[-4:] == [31, 63, 95, 127]
    assert sorted(order) == list(range(128))


@pytest.mark.parametrize(("rows", "blocks"), [(128, 4), (256, 12), (1, 1), (130, 5), (576, 224), (127, 3)])
def test_every_scale_has_its_place_and_comes_back(rows: int, blocks: int) -> None:
    scales = torch.randint(1, 256, (rows, blocks), dtype=torch.uint8, generator=torch.Generator().manual_seed(rows))
    line = swizzle(scales)
    tiles_along_k = -(-blocks // 4)
    assert line.shape == (swizzled_bytes(rows, blocks),) == (-(-rows // 128) * tiles_along_k * 512,)
    for row, block in ((0, 0), (rows - 1, blocks - 1), (rows // 2, blocks // 2)):
        tile = (row // 128) * tiles_along_k + block // 4
        assert line[tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + block % 4] == scales[row, block]
    assert int((line == 0).sum()) == line.numel() - rows * blocks, "padding is zeros, and nothing else is"
    assert torch.equal(unswizzle(line, rows, blocks), scales)


@pytest.mark.parametrize("dtype", [torch.float8_e8m0fnu, torch.float8_e4m3fn], ids=str)
def test_the_type_of_the_scales_is_kept(dtype: torch.dtype) -> None:
    scales = torch.arange(128 * 4, dtype=torch.int32).to(torch.uint8).view(128, 4).view(dtype)
    line = swizzle(scales)
    assert line.dtype == dtype
    back = unswizzle(line, 128, 4)
    assert back.dtype == dtype
    assert torch.equal(back.view(torch.uint8), scales.view(torch.uint8))


def test_what_is_not_a_line_of_tiles_is_refused() -> None:
    with pytest.raises(AssertionError, match="512 bytes"):
        unswizzle(torch.zeros(511, dtype=torch.uint8), 100, 3)
    with pytest.raises(AssertionError, match="one byte"):
        swizzle(torch.zeros(128, 4))
