"""A kernel that launches on a stream of its own, where no event of the sampler's stream sees it (pytorch/helion#2994)."""

import time

import pytest

from backends.launches.host_sampler import HostSampler
from backends.launches.plan import LaunchPlan
from backends.torch.cuda_graph import GraphSampler
from suite.case import Case, Regime, Workload, items
from suite.measure.spine import Order, Trial
from suite.outcome import Outcome
from suite.settings import MeasureSettings
from tests.backends.fake_cuda import FakeCuda
from tests.measure.stand_ins import ScriptedBackend, ScriptedKernel, ScriptedTelemetry

KERNEL_S = 2.5e-4
CASE = Case(
    Workload("gemm", "fp32", items({"m": 8, "n": 8, "k": 8, "layout": "nt"})),
    "library",
    "scripted",
    Regime("warm", "sustained", "device"),
)


class OwnStream(ScriptedKernel):
    """Its launches keep the device busy beside the current stream; a capture of that stream holds none of them."""

    def __init__(self, cuda: FakeCuda) -> None:
        super().__init__()
        self._cuda = cuda

    def enqueue(self, set_index: int) -> None:
        super().enqueue(set_index)
        self._cuda.elsewhere_s = max(self._cuda.elsewhere_s, self._cuda.now_s) + KERNEL_S


def test_a_graph_that_holds_no_launch_is_found_out_by_the_check_after_timing() -> None:
    """Its replays read next to nothing, and write nothing: the check goes through them."""
    cuda = FakeCuda()
    kernel = OwnStream(cuda)
    sampler = GraphSampler(kernel, 1, sample_s=1e-4, cuda=cuda)
    samples = sampler.sample(3)
    assert max(samples) / sampler.launches < KERNEL_S * 1e9 / 10
    backend = ScriptedBackend(kernel, sampler, ScriptedTelemetry(lambda: 0.0, lambda t: None))
    trial = Trial(backend, CASE, Order(1, 1e-6, 5, 1), MeasureSettings(), lambda phase: None)
    assert trial.prepare() is None
    ended = trial.finish()
    assert ended.outcome is Outcome.INCORRECT
    assert "never written" in ended.reason


def test_the_host_waits_for_the_whole_device(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = FakeCuda()
    kernel = OwnStream(cuda)
    monkeypatch.setattr("backends.launches.host_sampler.clock_resolution_s", lambda: 1e-9)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: round(cuda.now_s * 1e9))
    sampler = HostSampler(kernel, LaunchPlan(1, 1, 1), cuda.synchronize)
    assert list(sampler.sample(4)) == pytest.approx([KERNEL_S * 1e9] * 4, rel=1e-6)
