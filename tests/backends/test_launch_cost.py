"""What a launch, a synchronisation or a flush costs stands in no sample of the device's time."""

from statistics import median
from typing import Any

import pytest

from backends.torch.cuda_graph import GraphSampler
from backends.torch.cuda_spin import BATCH, SpinSampler
from tests.backends.fake_cuda import FakeCuda, FakeFlush, FakeKernel

KERNEL_S = 4e-6
LAUNCH_S = 5e-5
FLUSH_S = 5.8e-5


class SlowHost(FakeCuda):
    """Every call of the host takes ``LAUNCH_S``, a replay too; what a graph holds then runs without the host."""

    def __init__(self, *, external: bool = True) -> None:
        super().__init__(external=external, host_s=LAUNCH_S)
        outer, plain = self, self.CUDAGraph

        class Graph(plain):  # type: ignore[valid-type,misc]
            def replay(self) -> None:
                outer.now_s += outer.host_s
                outer.device_s = max(outer.device_s, outer.now_s)
                super().replay()

        self.CUDAGraph: Any = Graph


@pytest.mark.parametrize("external", [True, False])
def test_a_kernel_of_four_microseconds_reads_four_by_graphs(external: bool) -> None:
    """A synchronisation after each launch read 51 (flashinfer-bench#195)."""
    cuda = SlowHost(external=external)
    sampler = GraphSampler(FakeKernel(cuda, sets=2, seconds=KERNEL_S), 2, sample_s=0.002, cuda=cuda)
    samples = sampler.sample(21)
    assert sampler.launches > 400
    assert median(samples) / sampler.launches == pytest.approx(KERNEL_S * 1e9, rel=1e-3)
    # Events around a replay hold the gap before it where the device is idle: in the first sample, once in 500 launches.
    assert max(samples) / sampler.launches < KERNEL_S * 1e9 * 1.06


def test_a_kernel_of_four_microseconds_reads_four_behind_a_spin() -> None:
    cuda = SlowHost()
    sampler = SpinSampler(FakeKernel(cuda, sets=2, seconds=KERNEL_S), 2, None, cuda=cuda)
    assert list(sampler.sample(2 * BATCH)) == pytest.approx([KERNEL_S * 1e9] * 2 * BATCH)
    assert sampler.details["hidden"]


def test_a_no_op_reads_nothing_whatever_the_flush_before_it_costs() -> None:
    """Clearing the cache within the events read 58 us for kernels of 5 (TileOPs#1725, tritonbench#527)."""
    cuda = SlowHost()
    no_op = FakeKernel(cuda, sets=1, seconds=0.0)
    no_op.set_bytes = 0  # as of the calibration's empty kernel: a launch without work is meant
    sampler = SpinSampler(no_op, 1, FakeFlush(cuda, FLUSH_S), cuda=cuda, works=False)
    cuda.launched.clear()
    assert list(sampler.sample(BATCH)) == [0] * BATCH
    assert cuda.launched[-2 * BATCH :] == [-1, 0] * BATCH
