"""Compiling ahead, in processes of their own."""

import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, wait
from multiprocessing import get_context

COMPILE_S = 120.0

Compilation = Callable[[], str]


class Compiler:
    """Compiles ahead on all but two cores, each key once, in the order in which they are asked for."""

    def __init__(self) -> None:
        workers = max(1, (os.cpu_count() or 2) - 2)
        self._pool = ProcessPoolExecutor(workers, get_context("spawn"))
        self._found: dict[Hashable, Future[str]] = {}

    def ask(self, compilations: Mapping[Hashable, Compilation]) -> None:
        """``compilations`` go to another process, each under the key of the kernel that it puts into the cache."""
        for key, compilation in compilations.items():
            if key not in self._found:
                self._found[key] = self._pool.submit(compilation)

    def wait(self, keys: Iterable[Hashable]) -> None:
        """Until they are in the cache, or have failed: then the case's own attempt says why."""
        wait([self._found[key] for key in keys], timeout=COMPILE_S)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
