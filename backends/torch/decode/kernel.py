"""A decoding step made ready on a torch device."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from backends.torch import check
from backends.torch.decode.operands import Buffers
from backends.torch.decode.reference import Decoding
from backends.torch.decode.way import Made
from backends.torch.kernel import InputSet, TorchKernel
from backends.torch.precision import Precision
from suite.backend import Observed, Probe, Reference


class DecodeKernel(TorchKernel):
    """A torch kernel some of whose launches return their result in a buffer of a library's own.

    Such a result goes into the output only when it is looked at, and in a captured graph behind the launches that are timed
    (``hand_over``): copying it is not what is measured.
    """

    def __init__(
        self,
        buffers: Sequence[Buffers],
        made: Made,
        decoding: Decoding,
        distribution: str,
        execution: str,
        description: Mapping[str, Any],
        moved_bytes: int,
    ) -> None:
        self.decoding = decoding
        self.buffers, self._renewals = tuple(buffers), tuple(made.renewals)
        self.hands_over = made.returns
        self._moved_bytes = moved_bytes
        self._returned: dict[int, torch.Tensor] = {}
        launches: Sequence[Callable[[], Any]] = made.launches
        if made.returns:
            launches = [partial(self._keep, index, launch) for index, launch in enumerate(made.launches)]
        pairs = zip(buffers, launches, strict=True)
        input_sets = [InputSet(each.operands, each.output, launch) for each, launch in pairs]
        super().__init__(input_sets, decoding, distribution, execution, Precision(), description)

    @property
    def set_bytes(self) -> int:
        """What a step has to move: places without a token are in the buffers, and no launch touches them."""
        return self._moved_bytes

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
        """With the norms of rows: short sequences have larger ones than long ones."""
        each = self.input_sets[probe.set_index]
        signs = check.sign_vector(each.output.shape[1], probe.seed, each.output.device)
        tiles = tuple(check.to_numpy(self.decoding.tile(each.operands, *tile)) for tile in probe.tiles)
        projection, norms = self.decoding.look(each.operands, signs)
        return Reference(tiles, check.to_numpy(projection), check.to_numpy(norms))

    def hand_over(self, sets: Collection[int]) -> None:
        """Copy what the latest launches of these sets returned into their outputs, and forget it."""
        for index in sets:
            returned = self._returned.pop(index, None)
            if returned is not None:
                self.buffers[index].o.copy_(returned)

    def describe(self) -> Mapping[str, Any]:
        of_results = {"results": "in the library's own buffers"} if self.hands_over else {}
        return {**super().describe(), **of_results}

    def close(self) -> None:
        super().close()
        self.buffers, self._renewals = (), ()
        self._returned.clear()

    def _keep(self, index: int, launch: Callable[[], torch.Tensor]) -> None:
        self._returned[index] = launch()
