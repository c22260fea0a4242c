"""A kernel some of whose launches return their results in buffers of a library's own."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import torch

from backends.torch import check
from backends.torch.data import Operand
from backends.torch.kernel import Formula, InputSet, TorchKernel
from backends.torch.precision import Precision
from backends.torch.way import Made
from suite.backend import Observed, Probe, Reference

Results = Sequence[torch.Tensor]


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


class ReturningKernel(TorchKernel, Generic[B]):
    """Where ``made`` says so, launches return a tensor for each of a set's ``results``.

    Such results go into the outputs only when they are looked at, and in a captured graph behind the launches that are timed
    (``hand_over``): copying them is not what is measured.
    """

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
        self.hands_over = made.returns
        self._returned: dict[int, Results] = {}
        launches: Sequence[Callable[[], Any]] = made.launches
        if made.returns:
            launches = [partial(self._keep, index, launch) for index, launch in enumerate(made.launches)]
        pairs = zip(buffers, launches, strict=True)
        input_sets = [InputSet(each.operands, each.output, launch) for each, launch in pairs]
        super().__init__(input_sets, formula, distribution, execution, Precision(), description)

    def refill(self, seed: int) -> None:
        super().refill(seed)
        for renew in self._renewals:
            renew()

    def poison(self) -> None:
        self._returned.clear()
        super().poison()

    def observe(self, probe: Probe) -> Observed:
        self.hand_over([probe.set_index])
        return super().observe(probe)

    def reference(self, probe: Probe) -> Reference:
        """With the norms of rows: those of few keys, first of a causal mask or of a short sequence, are many times as large."""
        each = self.input_sets[probe.set_index]
        signs = check.sign_vector(each.output.shape[1], probe.seed, each.output.device)
        tiles = tuple(check.to_numpy(self._looked.tile(each.operands, *tile)) for tile in probe.tiles)
        projection, norms = self._looked.look(each.operands, signs)
        return Reference(tiles, check.to_numpy(projection), check.to_numpy(norms))

    def hand_over(self, sets: Collection[int]) -> None:
        """Copy what the latest launches of these sets returned into their outputs, and forget it."""
        for index in sets:
            returned = self._returned.pop(index, ())
            for result, given in zip(self.buffers[index].results, returned, strict=bool(returned)):
                result.copy_(given)

    def describe(self) -> Mapping[str, Any]:
        of_results = {"results": "in the library's own buffers"} if self.hands_over else {}
        return {**super().describe(), **of_results}

    def close(self) -> None:
        super().close()
        self.buffers, self._renewals = (), ()
        self._returned.clear()

    def _keep(self, index: int, launch: Callable[[], Results]) -> None:
        self._returned[index] = launch()
