"""A case made ready on a torch device: rotating input sets in fixed buffers, and one launch for each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch

from backends.seeds import mixed_seed
from backends.torch import check
from backends.torch.data import Operand
from backends.torch.precision import Precision, enforce
from suite.backend import FEW_ELEMENTS, Observed, Probe, Reference


class Formula(Protocol):
    """What the output should be, in float64, from the operands as they are stored."""

    def tile(self, operands: Sequence[Operand], row: int, column: int, rows: int, columns: int) -> torch.Tensor:
        """A part of the output (rows x columns)."""
        ...

    def project(self, operands: Sequence[Operand], vector: torch.Tensor) -> torch.Tensor:
        """The whole output (rows x columns) times a vector (columns): one value a row."""
        ...

    def expected_size(self, operands: Sequence[Operand], rows: int, columns: int) -> float:
        """Root mean square of the elements of the whole output (rows x columns) over all signs of the terms that make them.

        It is asked of outputs of few elements only; 0 of those that are never all near 0 by chance.
        """
        return 0.0


class InputSet(NamedTuple):
    """Buffers of one rotating set and the call that computes ``output`` (a matrix) from ``operands``."""

    operands: tuple[Operand, ...]
    output: torch.Tensor
    launch: Callable[[], Any]


class TorchKernel:
    """The contract ``suite.backend.Kernel`` over torch tensors; ``input_sets`` are in rotation order."""

    def __init__(
        self,
        input_sets: Sequence[InputSet],
        formula: Formula,
        distribution: str,
        execution: str,
        precision: Precision,
        description: Mapping[str, Any],
    ) -> None:
        self.input_sets = tuple(input_sets)
        self.formula = formula
        self.distribution = distribution
        self.execution = execution
        self.precision = precision
        self.sets = len(self.input_sets)
        self.seed: int | None = None  # of the data in the inputs
        # What is known of the inputs only once they are filled, for ``describe``.
        self.of_inputs: Callable[[], Mapping[str, Any]] = dict
        self._description = dict(description)
        # Looked up on every launch: a plain tuple of calls keeps the host's share of a launch small.
        self._launches = tuple(each.launch for each in self.input_sets)

    @property
    def output_shape(self) -> tuple[int, int]:
        rows, columns = self.input_sets[0].output.shape
        return int(rows), int(columns)

    @property
    def set_bytes(self) -> int:
        """Bytes that one launch touches: operands and output of one set."""
        first = self.input_sets[0]
        return sum(
            tensor.nbytes for tensor in (*(each for operand in first.operands for each in operand.buffers), first.output)
        )

    def enqueue(self, set_index: int) -> None:
        enforce(self.precision)
        self._launches[set_index]()

    def refill(self, seed: int) -> None:
        self.seed = seed
        for set_index, each in enumerate(self.input_sets):
            for operand_index, operand in enumerate(each.operands):
                operand.refill(self.distribution, mixed_seed(seed, set_index, operand_index))

    def poison(self) -> None:
        for each in self.input_sets:
            check.poison(each.output)

    def observe(self, probe: Probe) -> Observed:
        return check.observe(self.input_sets[probe.set_index].output, probe)

    def reference(self, probe: Probe) -> Reference:
        each = self.input_sets[probe.set_index]
        signs = check.sign_vector(each.output.shape[1], probe.seed, each.output.device)
        tiles = tuple(check.to_numpy(self.formula.tile(each.operands, *tile)) for tile in probe.tiles)
        projection = check.to_numpy(self.formula.project(each.operands, signs))
        return Reference(tiles, projection, expected_size=self.expected_size(each))

    def expected_size(self, each: InputSet) -> float:
        """Of an element of this set's output; 0 where there are so many that nothing need be expected of them."""
        return self.formula.expected_size(each.operands, *self.output_shape) if each.output.numel() < FEW_ELEMENTS else 0.0

    def describe(self) -> Mapping[str, Any]:
        of_case = {"precision": self.precision.to_json(), "distribution": self.distribution}
        return {**self._description, **of_case, **self.of_inputs()}

    def close(self) -> None:
        """Drop the buffers; whoever owns a caching allocator returns them to the device."""
        self.input_sets = ()
        self._launches = ()
        self.of_inputs = dict
