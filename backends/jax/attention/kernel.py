"""A case on XLA whose rows differ much in size: each is judged by its own."""

from collections.abc import Callable, Mapping
from typing import Any

from backends.jax import check
from backends.jax.attention.rowwise import Rowwise
from backends.jax.kernel import Plan, XlaKernel
from suite.backend import Probe, Reference


class RowwiseKernel(XlaKernel):
    """Of a plan whose formula is ``Rowwise``."""

    def __init__(
        self, plan: Plan, sets: int, seed: int, distribution: str, describe: Callable[[str], Mapping[str, Any]]
    ) -> None:
        assert isinstance(plan.formula, Rowwise)
        self._rowwise = plan.formula
        super().__init__(plan, sets, seed, distribution, describe)

    def reference(self, probe: Probe) -> Reference:
        """With the norms of rows: those of few keys, first of a causal mask or of a short sequence, are many times as large."""
        signs = check.sign_vector(self.output_shape[1], probe.seed)
        found = self._rowwise.look(self.inputs[probe.set_index], signs, probe.tiles)
        return Reference(found.tiles, found.projection, found.norms)
