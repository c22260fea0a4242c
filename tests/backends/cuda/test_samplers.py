"""Timing by a spin and by the host, the base figures, and whole cases."""

import json
from typing import Any

import pytest
import torch

from backends.cuda import CudaBackend
from suite.backend import Counting
from suite.case import Regime
from suite.measure.spine import Order, Trial
from suite.outcome import Outcome
from suite.settings import MeasureSettings
from tests.backends.cases import EVERY_FORMAT, calibration_case, fresh_verdict, tolerance_of
from tests.backends.cuda.helpers import (
    CALL,
    COLD,
    NEEDS_DEVICE,
    SAMPLE_S,
    WARM,
    cold_sets,
    graph_of,
    on_cuda,
    per_launch_ns,
    prepared,
)

pytestmark = NEEDS_DEVICE


@pytest.mark.alone
def test_the_spin_agrees_with_the_graph_on_a_long_kernel(backend: CudaBackend) -> None:
    """Of a kernel that memory decides: the pauses of a spin would let a compute-bound one clock higher."""
    spinning = CudaBackend({"sampler": "spin"})
    spinning.select(0)
    case = calibration_case("copy", 1 << 29, backend="cuda", regime=WARM)
    kernel = prepared(backend, case, 1)
    spin = spinning.sampler(kernel, case, SAMPLE_S)
    assert spin.method == "spin"
    graph_ns, spin_ns = per_launch_ns(graph_of(backend, kernel, case)), per_launch_ns(spin, 64)
    assert spin.details["hidden"]
    assert spin_ns == pytest.approx(graph_ns, rel=0.1)
    assert 1e-8 < spin.resolution_s < 2e-5


def test_what_cannot_be_captured_falls_back_and_leaves_graphs_usable(backend: CudaBackend) -> None:
    case = on_cuda("bf16", 512, 512, 512, regime=WARM)
    kernel = prepared(backend, case, 1)

    class Synchronising:
        """Does what a capture forbids."""

        def enqueue(self, set_index: int) -> None:
            if torch.cuda.is_current_stream_capturing():
                torch.cuda.synchronize()
            kernel.enqueue(set_index)

        def __getattr__(self, name: str) -> Any:
            return getattr(kernel, name)

    sampler = backend.sampler(Synchronising(), case, SAMPLE_S)
    assert sampler.method == "spin"
    assert "no graph" in sampler.details["why_spin"]
    assert len(sampler.sample(5)) == 5
    torch.cuda.empty_cache()
    assert per_launch_ns(graph_of(backend, kernel, case)) > 0
    assert fresh_verdict(kernel, case, seed=9).passed


@pytest.mark.alone
def test_a_call_includes_the_launch(backend: CudaBackend) -> None:
    case = on_cuda("bf16", 256, 256, 256, regime=WARM)
    kernel = prepared(backend, case, 1)
    device_ns = per_launch_ns(graph_of(backend, kernel, case))
    call = backend.sampler(kernel, on_cuda("bf16", 256, 256, 256, regime=CALL), SAMPLE_S)
    assert (call.method, call.launches) == ("host", 1)
    assert per_launch_ns(call, 200) > device_ns


@pytest.mark.alone
@pytest.mark.parametrize("op", ["read", "copy", "triad"])
def test_bandwidth_is_plausible_and_results_are_right(backend: CudaBackend, op: str) -> None:
    size = 4 << 30
    if backend.memory_free() < 3 * size:
        pytest.skip("too little free memory")
    case = calibration_case(op, size, backend="cuda")
    kernel = prepared(backend, case, 1)
    assert fresh_verdict(kernel, case, seed=5).passed
    sampler = graph_of(backend, kernel, case)
    bytes_s = size / per_launch_ns(sampler) * 1e9
    print(f"{op}: {bytes_s / 1e12:.3f} TB/s, {kernel.describe()['call']}, {dict(sampler.details)['kernels']}")
    reference = torch.empty(size // 8, dtype=torch.float32, device="cuda"), torch.ones(size // 8, device="cuda")
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    reference[0].copy_(reference[1])
    start.record()
    for _ in range(10):
        reference[0].copy_(reference[1])
    end.record()
    torch.cuda.synchronize()
    copied_s = 10 * size / start.elapsed_time(end) * 1e3
    assert 0.9 * copied_s < bytes_s < 1.3 * copied_s


@pytest.mark.parametrize("size_bytes", [4, 1000, 5_000_012, 3 * 4096 * 64])
@pytest.mark.parametrize("op", ["read", "copy", "triad"])
def test_odd_sizes(backend: CudaBackend, op: str, size_bytes: int) -> None:
    case = calibration_case(op, size_bytes, backend="cuda")
    assert fresh_verdict(prepared(backend, case, 2), case, seed=6).passed


@pytest.mark.alone
def test_an_empty_kernel_is_short_on_the_device_and_longer_to_call(backend: CudaBackend) -> None:
    times = {}
    for regime in (WARM, CALL):
        case = calibration_case("empty", 0, backend="cuda", regime=regime)
        sampler = backend.sampler(prepared(backend, case, 1), case, SAMPLE_S)
        times[regime.dispatch] = per_launch_ns(sampler, 100)
    print(times)
    assert 200 < times["device"] < 5_000
    assert times["device"] < times["call"] < 200_000


@pytest.mark.alone
@pytest.mark.parametrize("format_name", EVERY_FORMAT)
@pytest.mark.parametrize("regime", [COLD, WARM, CALL, Regime("cold", "burst", "device")], ids=lambda regime: regime.label)
def test_the_whole_line_of_one_case(backend: CudaBackend, format_name: str, regime: Regime) -> None:
    case = on_cuda(format_name, 1024, 1024, 1024, regime=regime)
    reason = backend.supports(case)
    if reason is not None:
        pytest.skip(reason)
    settings = MeasureSettings(
        min_time_s=0.02, max_time_s=1.0, steady_timeout_s=0.2, steady_window_s=0.05, burst_first_idle_s=0.1, burst_idle_s=0.05
    )
    order = Order(cold_sets(backend, case), tolerance_of(case), 5, 1)
    trial = Trial(backend, case, order, settings, lambda phase: None)
    ended = trial.prepare()
    assert ended is None, ended
    trial.measure(0)
    measurement = trial.finish()
    trial.close()
    assert measurement.outcome is Outcome.OK, measurement.reason
    assert json.dumps(measurement.to_json())
    assert measurement.samples is not None
    flop_s = 2 * 1024**3 * measurement.samples.launches / (measurement.samples.min_ns / 1e9)
    print(f"{case.title}: {flop_s / 1e12:.1f} TFLOP/s, {measurement.samples.method} x {measurement.samples.launches}")
    assert 1e10 < flop_s < 1e16


@pytest.mark.alone
def test_the_clock_of_each_sample_is_that_of_the_window_around_them(backend: CudaBackend) -> None:
    kernel = prepared(backend, on_cuda("bf16", 4096, 4096, 4096, regime=WARM), 1)
    sampler = graph_of(backend, kernel, on_cuda("bf16", 4096, 4096, 4096, regime=WARM))
    assert isinstance(sampler, Counting)
    assert sampler.details["clock"] == "counted over each graph"
    telemetry = backend.telemetry()
    sampler.sample(50)
    telemetry.start()
    telemetry.mark()
    durations_ns = sampler.sample(100)
    telemetry.mark()
    (window_hz,) = telemetry.stop()["device_clock"].values
    clocks_hz = [1e3 * each for each in sampler.clocks_khz()]
    assert len(clocks_hz) == len(durations_ns)
    assert sum(clocks_hz) / len(clocks_hz) == pytest.approx(window_hz, rel=0.01)
    assert max(clocks_hz) < 1.02 * 1.98e9
    cycles = sorted(ns * hz for ns, hz in zip(durations_ns, clocks_hz, strict=True))
    assert cycles[75] / cycles[25] < 1.01
