"""Where in memory BLAS libraries work, in the launches of a captured graph.

A product that splits its inner dimension writes parts of its result into a workspace and adds them up.  torch gives a library
one workspace for each stream of a process, and where that lies can be worth 2.5 % of such a product's time, for the whole of a
process and something else in the next.  So each input set is captured with a workspace at a place of its own, as it has
operands at a place of their own.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import torch

from backends.launches.plan import Launchable

MIB = 1 << 20
BYTES_AT_MOST = 1024 * MIB  # what torch gives on Hopper, 32 or 33 MiB, at sixteen places; no plan reckons with more


def free_workspaces() -> None:
    """Give back what torch has given BLAS libraries to work in; their next launch is given it anew, where memory is free."""
    free = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)  # a build of torch without CUDA has none
    if free is not None:
        free()


def _hold(size_bytes: int) -> torch.Tensor:
    return torch.empty(size_bytes, dtype=torch.uint8, device="cuda")


class WorkspacePlaces:
    """Places of ``workspace_bytes`` each for the launches of ``sets`` input sets, in the pool of the graphs being captured.

    ``count`` places, one for each set, or fewer that sets share where they would take more than ``BYTES_AT_MOST``; none where
    launches need no workspace.  They are held from the first capture until the last; a graph keeps its pool.
    """

    def __init__(
        self,
        workspace_bytes: int,
        sets: int,
        free: Callable[[], None] = free_workspaces,
        hold: Callable[[int], Any] = _hold,
    ) -> None:
        self.count = min(sets, max(1, BYTES_AT_MOST // workspace_bytes)) if workspace_bytes > 0 else 0
        self._bytes = workspace_bytes
        self._free, self._hold = free, hold
        self._held: dict[int, Any] = {}
        self._current: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._held.clear()

    def enqueue(self, kernel: Launchable, set_index: int) -> None:
        """Launch the kernel with its set's workspace: the only place that is free, as all others are held."""
        if self.count and set_index % self.count != self._current:
            self.leave()
            self._current = set_index % self.count
            self._held.pop(self._current, None)
        kernel.enqueue(set_index)

    def leave(self) -> None:
        """Take the current set's place back from the library; called while the graph is still being captured."""
        if self._current is None:
            return
        self._free()
        self._held[self._current] = self._hold(self._bytes)
        self._current = None
