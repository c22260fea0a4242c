"""Kernels whose results are stages: what the parts of the decode_step job have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from backends.torch.decode_step.stages import Stage, observed, output_shape, reference
from suite.backend import Observed, Probe, Reference


class StagedKernel(ABC):
    """The contract ``suite.backend.Kernel`` but for launches and data, which whoever derives from it has.

    ``reference`` remembers what the inputs are, before anything is launched; ``observe`` tells whether they still are.
    """

    def __init__(self, sets: int, set_bytes: int, execution: str, distribution: str, description: Mapping[str, Any]) -> None:
        self.sets, self.execution, self.distribution = sets, execution, distribution
        self.seed: int | None = None  # of the data in the inputs
        self._set_bytes, self._description = set_bytes, dict(description)
        self._inputs: dict[int, int] = {}

    @property
    def set_bytes(self) -> int:
        """What one launch moves at least."""
        return self._set_bytes

    @property
    def output_shape(self) -> tuple[int, int]:
        return output_shape(self.stages(0))

    @abstractmethod
    def enqueue(self, set_index: int) -> None:
        """Launch one set."""

    @abstractmethod
    def refill(self, seed: int) -> None:
        """Fresh data, told to ``refilled``."""

    @abstractmethod
    def poison(self) -> None:
        """Overwrite what launches write."""

    @abstractmethod
    def stages(self, set_index: int) -> Sequence[Stage]:
        """What one set's latest launch left, in the order in which it came about."""

    @abstractmethod
    def inputs(self, set_index: int) -> int:
        """A number that tells one set's inputs from others: see ``changes.fingerprint``."""

    def refilled(self, seed: int) -> None:
        """Inputs are others now."""
        self.seed = seed
        self._inputs.clear()

    def observe(self, probe: Probe) -> Observed:
        known = self._inputs.get(probe.set_index)
        changed = known is not None and self.inputs(probe.set_index) != known
        return observed(self.stages(probe.set_index), probe, changed)

    def reference(self, probe: Probe) -> Reference:
        self._inputs[probe.set_index] = self.inputs(probe.set_index)
        return reference(probe, self.output_shape)

    def describe(self) -> Mapping[str, Any]:
        return {**self._description, "distribution": self.distribution}

    def close(self) -> None:
        self._inputs.clear()
