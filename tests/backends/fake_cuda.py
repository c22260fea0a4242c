"""A stand-in for ``torch.cuda`` with a scripted clock: enough for the samplers' order of events to be tested anywhere.

A stream is a list of operations that take device time in order.  The host's own time passes only when it is told to.
Until ``elsewhere_s`` another stream keeps the device busy, and a kernel takes twice as long.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SPIN_HZ = 2e9


class FakeCuda:
    """``external`` says whether events can be nodes of a graph, ``capturable`` whether launches can be captured."""

    def __init__(self, *, external: bool = True, capturable: bool = True, host_s: float = 0.0) -> None:
        self.external, self.capturable, self.host_s = external, capturable, host_s
        self.device_s = 0.0
        self.elsewhere_s = 0.0
        self.spins = 0
        self.now_s = 0.0
        self.capturing: list[Callable[[], None]] | None = None
        self.graphs_captured = 0
        self.launched: list[int] = []
        outer = self

        class Event:
            def __init__(self, enable_timing: bool = False, **options: Any) -> None:
                if options and not outer.external:
                    raise TypeError("Event got an unexpected keyword argument 'external'")
                self.at_s: float | None = None

            def record(self) -> None:
                outer.run(self._stamp)

            def _stamp(self) -> None:
                self.at_s = outer.device_s

            def synchronize(self) -> None:
                outer.now_s = max(outer.now_s, self.at_s or 0.0)

            def query(self) -> bool:
                return self.at_s is not None and self.at_s <= outer.now_s

            def elapsed_time(self, end: "Event") -> float:
                assert self.at_s is not None
                assert end.at_s is not None
                assert end.at_s <= outer.now_s, "read before the device was done"
                return (end.at_s - self.at_s) * 1e3

        class CUDAGraph:
            def __init__(self) -> None:
                self.nodes: list[Callable[[], None]] = []

            def replay(self) -> None:
                for node in self.nodes:
                    node()

        class Stream:
            def wait_stream(self, other: "Stream") -> None:
                pass

        self.Event, self.CUDAGraph, self.Stream = Event, CUDAGraph, Stream
        self.current = Stream()

    def run(self, operation: Callable[[], None]) -> None:
        """Capture an operation, or queue it now; the device never starts one before the host asked for it."""
        if self.capturing is not None:
            self.capturing.append(operation)
            return
        self.now_s += self.host_s
        self.device_s = max(self.device_s, self.now_s)
        operation()

    def kernel(self, set_index: int, seconds: float) -> None:
        def work() -> None:
            self.device_s += 2 * seconds if self.device_s < self.elsewhere_s else seconds
            self.launched.append(set_index)

        if self.capturing is not None and not self.capturable:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        self.run(work)

    @contextmanager
    def graph(self, graph: Any, pool: Any = None, stream: Any = None) -> Iterator[None]:
        before, self.current = self.current, stream
        self.capturing = graph.nodes
        try:
            yield
        finally:
            self.capturing = None
        self.current = before  # as torch: not after a capture that failed
        self.graphs_captured += 1

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        yield

    def current_stream(self) -> Any:
        return self.current

    def set_stream(self, stream: Any) -> None:
        self.current = stream

    def current_device(self) -> int:
        return 0

    def memory_allocated(self) -> int:
        return 0

    def graph_pool_handle(self) -> tuple[int, int]:
        return (0, 1)

    def synchronize(self) -> None:
        self.now_s = max(self.now_s, self.device_s, self.elsewhere_s)

    def _sleep(self, cycles: int) -> None:
        self.spins += 1

        def spin() -> None:
            self.device_s += cycles / SPIN_HZ

        self.run(spin)


class FakeKernel:
    """A kernel of ``sets`` input sets whose launch takes ``seconds`` on the fake device."""

    def __init__(self, cuda: FakeCuda, sets: int, seconds: float) -> None:
        self._cuda, self._seconds, self.sets = cuda, seconds, sets

    def enqueue(self, set_index: int) -> None:
        self._cuda.kernel(set_index, self._seconds)


class FakeFlush:
    size_bytes = 1 << 20

    def __init__(self, cuda: FakeCuda, seconds: float) -> None:
        self._cuda, self._seconds = cuda, seconds

    def __call__(self) -> None:
        self._cuda.kernel(-1, self._seconds)
