"""A grouped product made ready on a torch device."""

from typing import Any

from backends.torch.handing_over import HandingKernel


class GroupedKernel(HandingKernel):
    """``moved_bytes`` are what a launch has to move: the B of groups without rows is in the buffers, and nothing touches it."""

    def __init__(self, moved_bytes: int, *arguments: Any) -> None:
        self._moved_bytes = moved_bytes
        super().__init__(*arguments)

    @property
    def set_bytes(self) -> int:
        return self._moved_bytes
