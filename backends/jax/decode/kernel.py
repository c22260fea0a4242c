"""A decoding step made ready on XLA."""

from collections.abc import Callable, Mapping
from typing import Any

import jax

from backends.jax.attention.kernel import RowwiseKernel
from backends.jax.decode.error import quantisation_error
from backends.jax.decode.filling import Step, filled
from backends.jax.kernel import Plan
from backends.seeds import mixed_seed


class DecodeKernel(RowwiseKernel):
    """Operands are the page table, lengths, queries, keys and, where they are stored apart, values."""

    def __init__(
        self,
        step: Step,
        plan: Plan,
        sets: int,
        seed: int,
        distribution: str,
        describe: Callable[[str], Mapping[str, Any]],
        moved_bytes: int,
    ) -> None:
        self._step, self._moved_bytes, self._seed = step, moved_bytes, seed
        super().__init__(plan, sets, seed, distribution, describe)

    @property
    def set_bytes(self) -> int:
        """What a step has to move: places without a token are in the buffers, and no launch needs them."""
        return self._moved_bytes

    def describe(self) -> Mapping[str, Any]:
        """With what rounding costs the first set, of its data of then."""
        if not self.inputs:
            return super().describe()
        error = quantisation_error(self._step, self.inputs[0], self.distribution, mixed_seed(self._seed, 0))
        return {**super().describe(), **({} if error is None else {"quantisation_error": error})}

    def refill(self, seed: int) -> None:
        self._seed = seed
        for index in range(self.sets):
            self._keep(index, ())  # its memory is free for the next
            self._keep(index, filled(self._step, self.distribution, mixed_seed(seed, index)))
        jax.block_until_ready(self.inputs)  # a draw that has no room fails behind the call: it is told here
