"""A formula whose rows differ much in size: in float64 on the host, by every core, each row computed once for all that a check
asks of it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backends.jax.data import Operand
from backends.jax.kernel import Formula
from backends.jax.widening import threads

# Of all threads together, in float64; a part that needs more alone is computed alone.
SCRATCH_BYTES = 512 * 2**20
Tile = tuple[int, int, int, int]


class Rows(NamedTuple):
    """Some rows of the output: which, what stands in them (rows x columns), and how large each is meant to be."""

    numbers: NDArray[np.int64]
    values: NDArray[np.float64]
    norms: NDArray[np.float64]


class Looked(NamedTuple):
    """The tiles asked for, the output (rows x columns) times a vector (columns), and how large each row is meant to be."""

    tiles: tuple[NDArray[np.float64], ...]
    projection: NDArray[np.float64]
    norms: NDArray[np.float64]


Part = Callable[[], Iterator[Rows]]


class Rowwise(Formula, ABC):
    """A formula in parts that are computed beside each other; together they have every row once."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the output."""

    @property
    @abstractmethod
    def part_bytes(self) -> int:
        """Memory that one part takes while it is computed."""

    @abstractmethod
    def parts(self, operands: Sequence[Operand]) -> Sequence[Part]: ...

    def look(self, operands: Sequence[Operand], vector: NDArray[np.float64], tiles: Sequence[Tile]) -> Looked:
        """All that a check asks, in one pass over the output."""
        rows, _ = self.shape
        projection, norms = np.zeros(rows), np.zeros(rows)
        found = tuple(np.zeros((height, width)) for _, _, height, width in tiles)

        def take(part: Part) -> None:
            for each in part():
                projection[each.numbers] = each.values @ vector
                norms[each.numbers] = each.norms
                for tile, place in zip(found, tiles, strict=True):
                    _put(tile, place, each)

        with ThreadPoolExecutor(max(1, min(threads(), SCRATCH_BYTES // max(1, self.part_bytes)))) as pool:
            list(pool.map(take, self.parts(operands)))
        return Looked(found, projection, norms)

    def tile(self, operands: Sequence[Operand], row: int, column: int, rows: int, columns: int) -> NDArray[np.float64]:
        return self.look(operands, np.zeros(self.shape[1]), [(row, column, rows, columns)]).tiles[0]

    def project(self, operands: Sequence[Operand], vector: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.look(operands, vector, ()).projection


def norms_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each row."""
    norms: NDArray[np.float64] = np.sqrt(np.einsum("rc,rc->r", values, values))
    return norms


def _put(tile: NDArray[np.float64], place: Tile, rows: Rows) -> None:
    row, column, height, width = place
    inside = (rows.numbers >= row) & (rows.numbers < row + height)
    if inside.any():
        tile[rows.numbers[inside] - row] = rows.values[inside, column : column + width]
