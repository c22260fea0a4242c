"""Where a program finds its tiles: by arithmetic alone in one product, by the list of tiles in grouped ones."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from backends.triton.fp8_blocks import hopper
from backends.triton.quantised.on_hopper import CONFIGS

ROWS, COLUMNS = 128, sorted({config.block_n for config in CONFIGS})


class Pointer(NamedTuple):
    """Numbers, and the place among them that is pointed at."""

    numbers: list[int]
    place: int = 0

    def __add__(self, places: Any) -> "Pointer":
        return Pointer(self.numbers, self.place + places)


def refused(_address: Any) -> int:
    raise AssertionError("a product of one B loads nothing to know its place")


@pytest.fixture
def place_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function of the kernel, on the numbers of Python."""
    language = SimpleNamespace(cdiv=lambda count, size: -(-count // size), to_tensor=int, load=refused)
    monkeypatch.setattr(hopper, "gl", language)
    monkeypatch.setattr(hopper, "ROWS", ROWS // 2)
    monkeypatch.setattr(hopper, "tile_of", hopper.tile_of.fn)
    monkeypatch.setattr(hopper, "rows_of_tiles", hopper.rows_of_tiles.fn)
    return hopper.place_of.fn


@pytest.mark.parametrize("block_n", COLUMNS)
@pytest.mark.parametrize("group", sorted({config.group for config in CONFIGS}))
@pytest.mark.parametrize(("m", "n"), [(4096, 4096), (1000, 1536), (1, 80), (129, 264), (2304, 128), (17 * 128, 8)])
def test_one_product_has_every_tile_once_without_a_load(place_of: Any, block_n: int, group: int, m: int, n: int) -> None:
    sizes = (None, None, m, n, 128)
    tiles_m = hopper.rows_of_tiles(sizes, True)
    tiles_n = -(-n // block_n)
    places = [place_of(number, tiles_m, sizes, block_n, group, True) for number in range(tiles_m * tiles_n)]
    assert {(of_b, end) for of_b, _, end, _ in places} == {(0, m)}
    expected = {(row, column) for row in range(0, m, ROWS) for column in range(0, n, block_n)}
    assert len(places) == len(expected)
    assert {(row, column) for _, row, _, column in places} == expected


def test_grouped_products_read_group_row_and_end_from_the_list(place_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopper.gl, "load", lambda pointer: pointer.numbers[pointer.place])
    ends, tile_list = Pointer([100, 300]), Pointer([3, 0, 0, 1, 100, 1, 228])
    sizes = (ends, tile_list, 300, 256, 128)
    assert hopper.rows_of_tiles(sizes, False) == 3
    places = [place_of(number, 3, sizes, 128, 16, False) for number in range(6)]
    assert places[:3] == [(0, 0, 100, 0), (1, 100, 300, 0), (1, 228, 300, 0)]
    assert places[3:] == [(group, row, end, 128) for group, row, end, _ in places[:3]]
