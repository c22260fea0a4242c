"""One configuration on the device, ready to be timed against others: a captured graph of its launches over the input sets."""

from collections.abc import Callable, Sequence
from typing import Any

from backends.torch.capture import Capture
from backends.torch.cuda_graph import NODES_AT_MOST, Recording

GRAPH_S = 5e-3
SETS_AT_MOST = 256  # of the input sets: more would tell the same, and each has its launch prepared


class Trial:
    """Times ``launches``, one for each input set, in rotation.  Raises ``RuntimeError`` where they cannot be captured."""

    def __init__(self, launches: Sequence[Callable[[], Any]], cuda: Any) -> None:
        self._launches = launches
        self.sets = len(launches)
        capture = Capture(cuda)
        capture.warm_up(self, self.sets)
        self._pool = cuda.graph_pool_handle()
        once = self._recorded(capture, self.sets)
        launch_s = _replayed_s(once) / self.sets
        rotations = min(NODES_AT_MOST, GRAPH_S / max(launch_s, 1e-9)) // self.sets
        self._nodes = self.sets * max(1, int(rotations))
        self._recording = self._recorded(capture, self._nodes)
        _replayed_s(self._recording)  # the first replay uploads the graph

    def enqueue(self, set_index: int) -> None:
        self._launches[set_index]()

    def time_s(self) -> float:
        """Seconds of one launch, over one replay."""
        return _replayed_s(self._recording) / self._nodes

    def _recorded(self, capture: Capture, nodes: int) -> Recording:
        return Recording(self, [node % self.sets for node in range(nodes)], capture, inside=False, pool=self._pool)


def _replayed_s(recording: Recording) -> float:
    recording.launch()
    return recording.duration_ns() * 1e-9
