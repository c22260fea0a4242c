"""Events of the current stream around a kernel that runs on another one read an empty pair (helion pull request 2994).

Graphs are safe: their replays then write nothing, which the check after timing finds (test_other_stream.py).
"""

from typing import Any

import pytest

from backends.torch.cuda_spin import BATCH, SpinSampler
from tests.backends.fake_cuda import FakeCuda, FakeFlush, FakeKernel

KERNEL_S = 2.5e-4
EMPTY_PAIR_S = 1.3e-6


class SlowEvents(FakeCuda):
    """An event takes the device as long as an empty pair reads on an H200."""

    def __init__(self) -> None:
        super().__init__()
        outer = self

        class Event(self.Event):  # type: ignore[name-defined,misc]
            def _stamp(self) -> None:
                super()._stamp()
                outer.device_s += EMPTY_PAIR_S

        self.Event: Any = Event


class OwnStream(FakeKernel):
    """Keeps the device busy beside the current stream, on which a pair of events then lies around nothing."""

    def enqueue(self, set_index: int) -> None:
        self._cuda.elsewhere_s = max(self._cuda.elsewhere_s, self._cuda.now_s) + self._seconds


@pytest.mark.parametrize("flushed", [True, False])
def test_a_kernel_on_a_stream_of_its_own_is_refused(flushed: bool) -> None:
    cuda = SlowEvents()
    flush = FakeFlush(cuda, 5e-5) if flushed else None
    with pytest.raises(RuntimeError, match="works on a stream of its own"):
        SpinSampler(OwnStream(cuda, 1, KERNEL_S), 1, flush, cuda=cuda).sample(BATCH)


def test_a_kernel_that_is_meant_to_do_nothing_is_timed() -> None:
    cuda = SlowEvents()
    samples = SpinSampler(FakeKernel(cuda, 1, 0.0), 1, None, cuda=cuda, works=False).sample(BATCH)
    assert max(samples) <= 1.1 * EMPTY_PAIR_S * 1e9
