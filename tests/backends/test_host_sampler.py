"""Timing by the host's clock: order of launches, flushes outside the time, and what a flush does to a cache."""

import time
from statistics import median

import pytest
import torch

from backends.cpu import CpuBackend
from backends.launches import host_sampler
from backends.launches.host_sampler import HostSampler, clock_resolution_s
from backends.launches.plan import LaunchPlan
from backends.torch.flush import Flush
from backends.torch.kernel import TorchKernel
from suite.case import Regime
from tests.backends.cases import CALL, COLD, WARM, fresh_verdict, gemm_case, verdict


class Recorder:
    """Stands in for a kernel, a flush and a wait, and notes what happened in which order."""

    size_bytes = 77

    def __init__(self, sets: int) -> None:
        self.sets = sets
        self.events: list[str] = []

    def enqueue(self, set_index: int) -> None:
        self.events.append(str(set_index))

    def __call__(self) -> None:
        self.events.append("flush")


def sampler_over(recorder: Recorder, plan: LaunchPlan, *, flush: bool) -> HostSampler:
    made = HostSampler(recorder, plan, lambda: recorder.events.append("wait"), recorder if flush else None)
    recorder.events.clear()
    return made


def test_cold_flushes_once_for_a_turn_over_the_sets() -> None:
    recorder = Recorder(sets=2)
    sampler_over(recorder, LaunchPlan(1, 2, 2), flush=True).sample(3)
    assert recorder.events == ["wait", "flush", "wait", "0", "wait", "1", "wait", "flush", "wait", "0", "wait"]


def test_cold_goes_on_in_the_rotation_and_flushes_before_a_set_comes_again() -> None:
    recorder = Recorder(sets=2)
    sampler = sampler_over(recorder, LaunchPlan(1, 2, 2), flush=True)
    sampler.sample(1)
    recorder.events.clear()
    sampler.sample(1)
    assert recorder.events == ["wait", "1", "wait"]  # untouched since the flush before set 0
    recorder.events.clear()
    sampler.sample(1)
    assert recorder.events == ["wait", "flush", "wait", "0", "wait"]


def test_after_a_replay_nothing_is_taken_to_be_cold() -> None:
    """A check has just been through every set: the one that comes next in the rotation lies in the cache."""
    recorder = Recorder(sets=2)
    sampler = sampler_over(recorder, LaunchPlan(1, 2, 2), flush=True)
    sampler.sample(1)
    sampler.replay()
    recorder.events.clear()
    sampler.sample(1)
    assert recorder.events == ["wait", "flush", "wait", "0", "wait"]


def test_what_was_enqueued_before_is_in_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reading of the device's clock, say, which telemetry enqueues right before: 1 s of it, and 5 ns a launch."""
    now_ns, queued_ns = [0], [0]

    class Device(Recorder):
        def enqueue(self, set_index: int) -> None:
            queued_ns[0] += 5

    def wait() -> None:
        now_ns[0] += queued_ns[0]
        queued_ns[0] = 0

    monkeypatch.setattr(host_sampler, "clock_resolution_s", lambda: 1e-9)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now_ns[0])
    sampler = HostSampler(Device(sets=1), LaunchPlan(1, 1, 1), wait)
    queued_ns[0] += 10**9
    assert sampler.sample(3) == [5, 5, 5]


def test_warm_groups_launches_of_one_set() -> None:
    recorder = Recorder(sets=1)
    sampler_over(recorder, LaunchPlan(3, 1, 1), flush=False).sample(2)
    assert recorder.events == ["wait", *["0", "0", "0", "wait"] * 2]


def test_a_replay_covers_sets_that_were_not_timed() -> None:
    recorder = Recorder(sets=3)
    sampler_over(recorder, LaunchPlan(1, 1, 1), flush=False).replay()
    assert recorder.events == ["0", "1", "2", "wait"]


def test_the_flush_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that each step moves: a flush by 1 s, a launch by 5 ns."""
    now_ns = [0]

    class Stepping(Recorder):
        def enqueue(self, set_index: int) -> None:
            now_ns[0] += 5

        def __call__(self) -> None:
            now_ns[0] += 10**9

    monkeypatch.setattr(host_sampler, "clock_resolution_s", lambda: 1e-9)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now_ns[0])
    recorder = Stepping(sets=1)
    sampler = HostSampler(recorder, LaunchPlan(1, 1, 1), lambda: None, recorder)
    assert sampler.sample(4) == [5, 5, 5, 5]


def test_the_clock_resolves_well_under_a_launch() -> None:
    assert 1e-9 <= clock_resolution_s() < 1e-5


@pytest.fixture(scope="module")
def backend() -> CpuBackend:
    made = CpuBackend({"threads": 1})
    made.select(0)
    return made


@pytest.mark.parametrize("regime", [COLD, WARM, CALL], ids=lambda regime: regime.label)
def test_real_samples_are_positive_and_grow_with_the_work(backend: CpuBackend, regime: Regime) -> None:
    def per_launch_ns(size: int) -> float:
        case = gemm_case("fp32", size, size, size, regime=regime)
        kernel = backend.prepare(case, 1, seed=3)
        sampler = backend.sampler(kernel, case, sample_s=0.002)
        samples = sampler.sample(7)
        assert len(samples) == 7
        assert min(samples) > 0
        kernel.refill(5)
        kernel.poison()
        sampler.replay()
        assert verdict(kernel, case, seed=5).passed
        sampler.close()
        kernel.close()
        return float(min(samples)) / sampler.launches

    assert per_launch_ns(768) > 3 * per_launch_ns(64)  # 1,728 times the work: other load cannot hide it


def test_warm_samples_last_about_as_long_as_asked(backend: CpuBackend) -> None:
    case = gemm_case("fp32", 32, 32, 32, regime=WARM)
    sampler = backend.sampler(backend.prepare(case, 1, seed=3), case, sample_s=0.004)
    assert sampler.launches > 50
    assert 0.0002 < median(sampler.sample(9)) / 1e9 < 0.08


def test_a_call_is_one_launch(backend: CpuBackend) -> None:
    case = gemm_case("fp32", 32, 32, 32, regime=CALL)
    sampler = backend.sampler(backend.prepare(case, 1, seed=3), case, sample_s=0.004)
    assert (sampler.launches, sampler.method) == (1, "host")


def test_sets_stay_apart(backend: CpuBackend) -> None:
    case = gemm_case("fp32", 24, 24, 24)
    kernel = backend.prepare(case, 3, seed=3)
    assert fresh_verdict(kernel, case, seed=8).passed
    assert isinstance(kernel, TorchKernel)
    assert not torch.equal(kernel.input_sets[0].output, kernel.input_sets[2].output)


def test_a_flush_evicts_a_private_cache() -> None:
    """A buffer that fits the core's own cache is read slower after a flush than right after itself.

    Judged on the private cache, because a shared one belongs to every guest of the machine; the best of many readings
    on each side leaves out what other programs did meanwhile.
    """
    torch.set_num_threads(1)
    buffer = torch.full((64, 2048), 1.5)  # 512 KiB
    total = torch.empty(64)
    flush = Flush(torch.device("cpu"), 256 << 20)

    def read_ns() -> int:
        began_ns = time.perf_counter_ns()
        torch.sum(buffer, dim=1, out=total)
        return time.perf_counter_ns() - began_ns

    warm, cold = [], []
    for _ in range(15):
        flush()
        cold.append(read_ns())
        read_ns()
        warm.append(read_ns())
    assert min(cold) > 1.3 * min(warm)


def test_a_flush_is_at_least_as_large_as_asked_and_not_zero() -> None:
    flush = Flush(torch.device("cpu"), (1 << 20) + 1)
    assert flush.size_bytes >= (1 << 20) + 1
    flush()
    assert (flush._sums > 0).all()
