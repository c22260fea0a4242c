"""A step as a row of stages, each held against the exact result of what the stages before it left.

Rounding of thirty layers would hide a head that one of them drops.  A stage is therefore judged by what it makes of its own
inputs, which are the stages before it as they stand in memory: the first has nothing before it but the data, so that all of
them right are the whole step right.

What a check sees is a matrix of defects: result minus exact result, in blocks of ``COLUMNS`` numbers of a row, each in units
of the block's own size, and as many times as much as the stage may be off by less than others.  All of it should be 0, and
rounding is what it is.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from backends.torch import check
from suite.backend import Observed, Probe, Reference

COLUMNS = 128
HOST = torch.device("cpu")
ALL = slice(None)

Exact = Callable[[slice, slice, torch.device], torch.Tensor]
Tile = tuple[int, int, int, int]


class Stage(NamedTuple):
    """``found`` (rows x width) as a launch left it.

    ``exact(rows, columns, on)`` are rows and columns of it in float64, computed on a device of choice.  ``counts`` is how many
    times as much a defect counts as one of the stage that may be the furthest off.
    """

    name: str
    found: torch.Tensor
    exact: Exact
    counts: float = 1.0

    @property
    def blocks_of_a_row(self) -> int:
        return -(-int(self.found.shape[1]) // COLUMNS)

    @property
    def blocks(self) -> int:
        return int(self.found.shape[0]) * self.blocks_of_a_row


class Looked(NamedTuple):
    """The blocks of one stage as far as a check asks of them; ``tiles`` has the parts of tiles that lie in it, by tile."""

    projection: torch.Tensor
    tiles: dict[int, list[tuple[int, torch.Tensor]]]


def output_shape(stages: Sequence[Stage]) -> tuple[int, int]:
    """Of the matrix of defects: the blocks of all stages, and a row that tells whether inputs were changed."""
    return sum(stage.blocks for stage in stages) + 1, COLUMNS


def reference(probe: Probe, shape: tuple[int, int]) -> Reference:
    """No defects, in blocks of numbers whose size is 1."""
    tiles = tuple(np.zeros((rows, columns)) for _, _, rows, columns in probe.tiles)
    return Reference(tiles, np.zeros(shape[0]), np.full(shape[0], math.sqrt(COLUMNS)), expected_size=1.0)


def observed(stages: Sequence[Stage], probe: Probe, changed: bool) -> Observed:
    """The matrix of defects; ``changed`` says that the launch wrote to inputs that are not its own to write to."""
    rows = output_shape(stages)[0]
    projection = np.zeros(rows)
    tiles = [np.zeros((height, width)) for _, _, height, width in probe.tiles]
    unwritten = nonfinite = first = 0
    for stage in stages:
        faults = check.observe(stage.found, Probe(probe.set_index, (), probe.seed))
        unwritten, nonfinite = unwritten + faults.unwritten, nonfinite + faults.nonfinite
        looked = look(stage, probe, first)
        projection[first : first + stage.blocks] = check.to_numpy(looked.projection)
        for index, parts in looked.tiles.items():
            for row, part in parts:
                tiles[index][row, : part.shape[0]] = check.to_numpy(part)
        first += stage.blocks
    projection[-1] = math.sqrt(COLUMNS) * changed
    return Observed(tuple(tiles), unwritten, nonfinite, projection)


def look(stage: Stage, probe: Probe, first: int) -> Looked:
    """One stage's blocks, which are rows of the matrix from ``first`` on.

    Tiles are computed on the host: what judges a device's products must not be others of its products.
    """
    exact = stage.exact(ALL, ALL, stage.found.device)
    sizes = block_sizes(exact)
    defects = in_blocks(stage.found.to(torch.float64) - exact) * (stage.counts / sizes)[..., None]
    signs = check.sign_vector(COLUMNS, probe.seed, defects.device)
    tiles = {
        index: [(row, _tile_row(stage, sizes, block, columns)) for row, block, columns in _within(stage, tile, first)]
        for index, tile in enumerate(probe.tiles)
    }
    return Looked((defects @ signs).flatten(), tiles)


def in_blocks(matrix: torch.Tensor) -> torch.Tensor:
    """(rows x width) as (rows, blocks, COLUMNS), zeros behind the last number of a row."""
    padded = torch.nn.functional.pad(matrix, (0, -matrix.shape[1] % COLUMNS))
    return padded.unflatten(1, (-1, COLUMNS))


def block_sizes(exact: torch.Tensor) -> torch.Tensor:
    """Root mean square of each block's numbers; of those below the stage's median the median, and 1 where all are 0.

    A block of nothing but rounding has no size to be judged by.
    """
    counts = in_blocks(torch.ones_like(exact[:1])).sum(2)
    sizes = (in_blocks(exact).square().sum(2) / counts).sqrt()
    sizes = sizes.clamp(min=float(sizes.median()))
    return torch.where(sizes > 0, sizes, 1.0)


def _within(stage: Stage, tile: Tile, first: int) -> Iterator[tuple[int, int, slice]]:
    """The rows of a tile that lie in a stage: which row of the tile, which block, and its columns of the stage."""
    top, left, height, width = tile
    for row in range(max(top, first), min(top + height, first + stage.blocks)):
        block = row - first
        start = block % stage.blocks_of_a_row * COLUMNS + left
        stop = min(start + width, stage.found.shape[1])
        if start < stop:
            yield row - top, block, slice(start, stop)


def _tile_row(stage: Stage, sizes: torch.Tensor, block: int, columns: slice) -> torch.Tensor:
    row = block // stage.blocks_of_a_row
    exact = stage.exact(slice(row, row + 1), columns, HOST)[0]
    found = stage.found[row, columns].to(HOST).to(torch.float64)
    return (found - exact) * (stage.counts / float(sizes.flatten()[block]))
