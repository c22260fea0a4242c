"""Attention made ready on a torch device."""

from collections.abc import Mapping, Sequence
from typing import Any

from backends.torch.attention.operands import Buffers
from backends.torch.attention.reference import Attention
from backends.torch.returning import ReturningKernel
from backends.torch.way import Made


class AttentionKernel(ReturningKernel[Buffers]):
    """Libraries return O, or the gradients of Q, K and V."""

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
        super().__init__(buffers, made, attention, distribution, execution, description)

    @property
    def set_bytes(self) -> int:
        return super().set_bytes + sum(int(tensor.nbytes) for tensor in self.buffers[0].saved)
