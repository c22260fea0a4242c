"""A case on XLA whose rows differ much in size: each is judged by its own."""

from collections.abc import Callable, Mapping
from typing import Any

from backends.jax import check
from backends.jax.attention.error import quantisation_error
from backends.jax.attention.layout import Layout
from backends.jax.attention.rowwise import Rowwise
from backends.jax.kernel import Plan, XlaKernel
from suite.backend import Probe, Reference
from suite.case import Workload

Describe = Callable[[str], Mapping[str, Any]]


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


class AttentionKernel(RowwiseKernel):
    """Operands are queries, keys and values, and backward the gradient of the output."""

    def __init__(self, workload: Workload, layout: Layout, plan: Plan, sets: int, seed: int, describe: Describe) -> None:
        self._workload, self._layout, self._seed = workload, layout, seed
        super().__init__(plan, sets, seed, workload.distribution, describe)

    def refill(self, seed: int) -> None:
        super().refill(seed)
        self._seed = seed

    def describe(self) -> Mapping[str, Any]:
        """With what rounding costs the first set, of its data of then."""
        if not self.inputs:
            return super().describe()
        error = quantisation_error(self._workload, self._layout, self.inputs[0], self._seed)
        return {**super().describe(), **({} if error is None else {"quantisation_error": error})}
