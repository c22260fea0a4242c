"""A whole decode step made ready on a torch device."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from backends.seeds import mixed_seed
from backends.torch import check
from backends.torch.decode_step.cache import newest, put_newest
from backends.torch.decode_step.operands import StepBuffers
from backends.torch.decode_step.reference import stages
from backends.torch.decode_step.staged import StagedKernel
from backends.torch.decode_step.stages import Stage
from backends.torch.handing_over import Returned
from backends.torch.precision import Precision, enforce
from backends.torch.way import Made
from suite.backend import Observed, Probe


class StepKernel(StagedKernel):
    """``made`` has a launch for each input set; where it returns, that is what attention left in each layer (``Returned``)."""

    def __init__(
        self,
        buffers: Sequence[StepBuffers],
        made: Made,
        tolerances: Mapping[str, float],
        set_bytes: int,
        execution: str,
        distribution: str,
        description: Mapping[str, Any],
    ) -> None:
        super().__init__(len(buffers), set_bytes, execution, distribution, description)
        self.buffers, self.hands_over = tuple(buffers), made.returns
        self._launches, self._tolerances, self._precision = tuple(made.launches), tolerances, Precision()
        self._returned = Returned([[layer.attended for layer in each.layers] for each in buffers])

    def enqueue(self, set_index: int) -> None:
        enforce(self._precision)
        if self.hands_over:
            self._returned.keep(set_index, self._launches[set_index])
        else:
            self._launches[set_index]()

    def refill(self, seed: int) -> None:
        fill(self.buffers, self.distribution, seed)
        self.refilled(seed)

    def poison(self) -> None:
        self._returned.clear()
        for each in self.buffers:
            for tensor in each.left:
                check.poison(tensor)
            for cache in each.caches:
                numbers = newest(cache)
                check.poison(numbers)
                put_newest(cache, numbers)

    def observe(self, probe: Probe) -> Observed:
        self.hand_over([probe.set_index])
        return super().observe(probe)

    def hand_over(self, sets: Collection[int]) -> None:
        """See ``Returned``."""
        self._returned.hand_over(sets)

    def stages(self, set_index: int) -> Sequence[Stage]:
        return stages(self.buffers[set_index], self._tolerances)

    def inputs(self, set_index: int) -> int:
        return self.buffers[set_index].fingerprint()

    def describe(self) -> Mapping[str, Any]:
        returned = {"results": "attention's in the library's own buffers"} if self.hands_over else {}
        return {**super().describe(), "precision": self._precision.to_json(), **returned}

    def close(self) -> None:
        super().close()
        self.buffers, self._launches = (), ()
        self._returned = Returned(())


def fill(buffers: Sequence[StepBuffers], distribution: str, seed: int) -> None:
    """Fresh numbers of a distribution in every set's inputs."""
    for set_index, each in enumerate(buffers):
        for operand_index, operand in enumerate(each.operands):
            operand.refill(distribution, mixed_seed(seed, set_index, operand_index))
