"""A decoding step made ready on XLA."""

from collections.abc import Callable, Mapping
from typing import Any

import jax

from backends.jax.attention.kernel import RowwiseKernel
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
        self._step, self._moved_bytes = step, moved_bytes
        super().__init__(plan, sets, seed, distribution, describe)

    @property
    def set_bytes(self) -> int:
        """What a step has to move: places without a token are in the buffers, and no launch needs them."""
        return self._moved_bytes

    def refill(self, seed: int) -> None:
        for index in range(self.sets):
            self._keep(index, ())  # its memory is free for the next
            self._keep(index, filled(self._step, self.distribution, mixed_seed(seed, index)))
        jax.block_until_ready(self.inputs)  # a draw that has no room fails behind the call: it is told here
