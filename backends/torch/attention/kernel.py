"""Attention made ready on a torch device."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from backends.torch import check
from backends.torch.attention.operands import Buffers
from backends.torch.attention.reference import Attention
from backends.torch.attention.way import Made
from backends.torch.kernel import InputSet, TorchKernel
from backends.torch.precision import Precision
from suite.backend import Observed, Probe, Reference

Results = Sequence[torch.Tensor]


class AttentionKernel(TorchKernel):
    """A torch kernel some of whose launches return their results in buffers of a library's own.

    Such results go into the outputs only when they are looked at, and in a captured graph behind the launches that are timed
    (``hand_over``): copying them is not what is measured.
    """

    def __init__(
        self,
        buffers: Sequence[Buffers],
        made: Made,
        attention: Attention,
        distribution: str,
        execution: str,
        description: Mapping[str, Any],
    ) -> None:
        self.attention = attention
        self.buffers, self._renewals = tuple(buffers), tuple(made.renewals)
        self.hands_over = made.returns
        self._returned: dict[int, Results] = {}
        launches: Sequence[Callable[[], Any]] = made.launches
        if made.returns:
            launches = [partial(self._keep, index, launch) for index, launch in enumerate(made.launches)]
        pairs = zip(buffers, launches, strict=True)
        input_sets = [InputSet(each.operands, each.output, launch) for each, launch in pairs]
        super().__init__(input_sets, attention, distribution, execution, Precision(), description)

    @property
    def set_bytes(self) -> int:
        return super().set_bytes + sum(int(tensor.nbytes) for tensor in self.buffers[0].saved)

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
        """With the norms of rows: the first queries of a causal mask see few keys, and their rows are many times as large."""
        each = self.input_sets[probe.set_index]
        signs = check.sign_vector(each.output.shape[1], probe.seed, each.output.device)
        tiles = tuple(check.to_numpy(self.attention.tile(each.operands, *tile)) for tile in probe.tiles)
        projection, norms = self.attention.look(each.operands, signs)
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
