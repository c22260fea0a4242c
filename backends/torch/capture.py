"""Capturing launches into CUDA graphs, and what torch keeps beside them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import torch

from backends.launches.plan import Launchable
from backends.torch.workspace_places import free_workspaces


@cache
def _capture_stream(cuda: Any) -> Any:
    """One stream for every sampler of this process: torch keeps a library workspace for each stream it ever used."""
    return cuda.Stream()


class Capture:
    """Where graphs are captured: a stream beside the default one.

    ``workspace_bytes`` is what torch gave BLAS libraries to work in for one launch of what was warmed up.
    """

    def __init__(self, cuda: Any) -> None:
        self.cuda = cuda
        self.stream = _capture_stream(cuda)
        self.workspace_bytes = 0

    @contextmanager
    def into(self, graph: Any, pool: Any | None = None) -> Iterator[None]:
        """Capture launches into ``graph``; a capture that fails leaves stream and allocator as they were.

        What libraries work in is taken anew before and after, so that it belongs to the graph: the next one that is captured
        may free what this one was given.
        """
        pool = self.cuda.graph_pool_handle() if pool is None else pool
        before = self.cuda.current_stream()
        free_workspaces()
        try:
            with self.cuda.graph(graph, pool=pool, stream=self.stream):
                yield
        except RuntimeError:
            # torch returns from a failed capture with the capturing stream current and, where it looks at the error
            # before it tells its allocator, with one that takes the capture for still under way and keeps all memory.
            self.cuda.set_stream(before)
            end_capture = getattr(torch._C, "_cuda_endAllocateToPool", None)
            if end_capture is not None:
                with suppress(RuntimeError):  # it was ended after all
                    end_capture(self.cuda.current_device(), pool)
            raise
        finally:
            free_workspaces()

    def warm_up(self, kernel: Launchable, sets: int) -> None:
        """Launch every set on the capturing stream, so that libraries load and get their workspace before a capture."""
        self.stream.wait_stream(self.cuda.current_stream())
        free_workspaces()
        with self.cuda.stream(self.stream):
            for set_index in range(sets):
                kernel.enqueue(set_index)
        allocated = self.cuda.memory_allocated()
        free_workspaces()
        self.workspace_bytes = allocated - self.cuda.memory_allocated()
        self.cuda.current_stream().wait_stream(self.stream)
        self.cuda.synchronize()
