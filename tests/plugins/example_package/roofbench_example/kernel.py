"""A case made ready in numpy arrays: rotating input sets in fixed buffers, one call for each, and what it should give."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suite.backend import Observed, Probe, Reference

Array = NDArray[Any]
BLOCK_ELEMENTS = 1 << 20  # of the reference, in float64
# NaNs with a payload that no arithmetic makes, so that an element that was never written is told from one that went wrong.
POISON = {"float32": (np.uint32, 0x7FC5EED5), "float64": (np.uint64, 0x7FF85EED5EED5EED)}


class InputSet(NamedTuple):
    """Buffers of one rotating set, and the call that computes ``output`` (a matrix) from ``operands``."""

    operands: tuple[Array, ...]
    output: Array
    launch: Callable[[], object]


class NumpyKernel:
    """The contract ``suite.backend.Kernel``.  ``rows_of`` gives rows of the right output, in float64, of some operands."""

    execution = "native"

    def __init__(
        self,
        input_sets: Sequence[InputSet],
        rows_of: Callable[[Sequence[Array], slice], Array],
        description: Mapping[str, Any],
    ) -> None:
        self._input_sets = list(input_sets)
        self._rows_of = rows_of
        self._description = {**description, "reference": "float64"}
        self._launches = [each.launch for each in input_sets]
        self.sets = len(self._input_sets)

    @property
    def set_bytes(self) -> int:
        first = self._input_sets[0]
        return sum(array.nbytes for array in (*first.operands, first.output))

    @property
    def output_shape(self) -> tuple[int, int]:
        rows, columns = self._input_sets[0].output.shape
        return rows, columns

    def enqueue(self, set_index: int) -> None:
        self._launches[set_index]()

    def refill(self, seed: int) -> None:
        """Normal data; every set and operand has its own."""
        for set_index, each in enumerate(self._input_sets):
            for index, operand in enumerate(each.operands):
                np.random.default_rng((seed, set_index, index)).standard_normal(dtype=operand.dtype.type, out=operand)

    def poison(self) -> None:
        for each in self._input_sets:
            view, bits = POISON[each.output.dtype.name]
            each.output.view(view).fill(bits)

    def observe(self, probe: Probe) -> Observed:
        output = self._input_sets[probe.set_index].output
        view, bits = POISON[output.dtype.name]
        unwritten = int(np.count_nonzero(output.view(view) == bits))
        nonfinite = output.size - int(np.count_nonzero(np.isfinite(output))) - unwritten
        tiles, projection = self._seen(probe, lambda rows: output[rows].astype(np.float64))
        return Observed(tiles, unwritten, nonfinite, projection)

    def reference(self, probe: Probe) -> Reference:
        operands = self._input_sets[probe.set_index].operands
        return Reference(*self._seen(probe, lambda rows: self._rows_of(operands, rows)))

    def describe(self) -> Mapping[str, Any]:
        return self._description

    def close(self) -> None:
        self._input_sets.clear()
        self._launches.clear()

    def _seen(self, probe: Probe, rows_of: Callable[[slice], Array]) -> tuple[tuple[Array, ...], Array]:
        """The probed tiles, and every row times the same random signs."""
        tiles = tuple(rows_of(slice(r, r + height))[:, c : c + width] for r, c, height, width in probe.tiles)
        signs = np.random.default_rng(probe.seed).choice((-1.0, 1.0), self.output_shape[1])
        parts = [rows_of(block) @ signs for block in self._blocks()]
        return tiles, np.concatenate(parts) if parts else np.empty(0)

    def _blocks(self) -> Iterator[slice]:
        rows, columns = self.output_shape
        widest = max([columns, *(operand.shape[-1] for operand in self._input_sets[0].operands)])
        step = max(1, BLOCK_ELEMENTS // max(widest, 1))
        yield from (slice(first, min(first + step, rows)) for first in range(0, rows, step))
