"""A kernel by a library or roofbench's own kernels whose results have rows of very different size."""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import torch

from backends.torch import check
from backends.torch.data import Operand
from backends.torch.handing_over import HandingKernel
from backends.torch.kernel import Formula, InputSet
from backends.torch.precision import Precision
from backends.torch.way import Made
from suite.backend import Probe, Reference


class Looked(Formula, Protocol):
    """A formula that tells how large each row of its output is."""

    def look(self, operands: Sequence[Operand], vector: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The output (rows x columns) times a vector (columns), and the norm of each row."""
        ...


class Buffers(Protocol):
    """One input set: ``output`` is what a check sees, a matrix; ``results`` are the tensors in it."""

    @property
    def operands(self) -> tuple[Operand, ...]: ...

    @property
    def output(self) -> torch.Tensor: ...

    @property
    def results(self) -> tuple[torch.Tensor, ...]: ...


B = TypeVar("B", bound=Buffers)


class ReturningKernel(HandingKernel, Generic[B]):
    """Where ``made`` says so, launches return a tensor for each of a set's ``results``; its renewals run after each refill."""

    def __init__(
        self,
        buffers: Sequence[B],
        made: Made,
        formula: Looked,
        distribution: str,
        execution: str,
        description: Mapping[str, Any],
    ) -> None:
        self._looked = formula
        self.buffers, self._renewals = tuple(buffers), tuple(made.renewals)
        pairs = zip(buffers, made.launches, strict=True)
        input_sets = [InputSet(each.operands, each.output, launch) for each, launch in pairs]
        results = [each.results for each in buffers]
        super().__init__(input_sets, results, made.returns, formula, distribution, execution, Precision(), description)

    def refill(self, seed: int) -> None:
        super().refill(seed)
        for renew in self._renewals:
            renew()

    def reference(self, probe: Probe) -> Reference:
        """With the norms of rows: those of few keys, first of a causal mask or of a short sequence, are many times as large."""
        each = self.input_sets[probe.set_index]
        signs = check.sign_vector(each.output.shape[1], probe.seed, each.output.device)
        tiles = tuple(check.to_numpy(self._looked.tile(each.operands, *tile)) for tile in probe.tiles)
        projection, norms = self._looked.look(each.operands, signs)
        return Reference(tiles, check.to_numpy(projection), check.to_numpy(norms))

    def close(self) -> None:
        super().close()
        self.buffers, self._renewals = (), ()
