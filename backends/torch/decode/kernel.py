"""A decoding step made ready on a torch device."""

from collections.abc import Mapping, Sequence
from typing import Any

from backends.torch.decode.operands import Buffers
from backends.torch.decode.reference import Decoding
from backends.torch.returning import ReturningKernel
from backends.torch.way import Made


class DecodeKernel(ReturningKernel[Buffers]):
    """Libraries return O (batch, q_len, query heads, columns)."""

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
        self._moved_bytes = moved_bytes
        super().__init__(buffers, made, decoding, distribution, execution, description)

    @property
    def set_bytes(self) -> int:
        """What a step has to move: places without a token are in the buffers, and no launch touches them."""
        return self._moved_bytes
