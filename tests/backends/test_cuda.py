"""Everything of the CUDA backend that needs a device: run with ``pytest -m gpu tests/backends/test_cuda.py``."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import pytest
import torch

from backends.cuda import CudaBackend
from backends.torch import jobs
from backends.torch.cuda_graph import GraphSampler
from backends.torch.cuda_spin import SpinSampler
from backends.torch.kernel import TorchKernel
from backends.torch.target import cuda_target
from suite.backend import DeviceInfo
from suite.case import Case, Regime
from suite.errors import DeviceNotFound
from suite.jobs.calibration import CalibrationJob
from suite.jobs.gemm import GemmJob
from suite.measure.regimes import rotating_sets
from suite.measure.spine import Order, Trial
from suite.outcome import Outcome
from suite.settings import MeasureSettings
from tests.backends.cases import EVERY_FORMAT, calibration_case, fresh_verdict, gemm_case, run_all, tolerance_of, verdict
from tests.backends.planted_bugs import BUGS, Bug

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]

COLD = Regime("cold", "sustained", "device")
WARM = Regime("warm", "sustained", "device")
CALL = Regime("warm", "sustained", "call")
SAMPLE_S = 0.002
# Awkward sizes that the libraries take: int8 wants m > 16 and multiples of 8, fp8 multiples of 16.
SHAPES = [(17, 48, 64), (33, 16, 4096), (1000, 272, 80), (256, 1024, 512)]
FREE_SHAPES = [(1, 1, 1), (17, 33, 65), (1, 300, 257), (513, 1, 31)]


@pytest.fixture(scope="module")
def backend() -> CudaBackend:
    made = CudaBackend()
    made.select(0)
    return made


@pytest.fixture(autouse=True)
def _memory_is_given_back() -> Iterator[None]:
    yield
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def on_cuda(format_name: str, m: int, n: int, k: int, **options: Any) -> Case:
    return gemm_case(format_name, m, n, k, backend="cuda", **options)


def prepared(backend: CudaBackend, case: Case, sets: int, seed: int = 3) -> TorchKernel:
    reason = backend.supports(case)
    if reason is not None:
        pytest.skip(reason)
    kernel = backend.prepare(case, sets, seed)
    assert isinstance(kernel, TorchKernel)
    return kernel


def per_launch_ns(sampler: Any, count: int = 15) -> float:
    sampler.sample(3)
    middle_ns: float = median(sampler.sample(count))
    return middle_ns / int(sampler.launches)


def cold_sets(backend: CudaBackend, case: Case) -> int:
    """Enough input sets to be cold by rotation."""
    job = CalibrationJob() if case.workload.job == "calibration" else GemmJob()
    return rotating_sets(case.regime, job.footprint(case.workload), backend.devices()[0].llc_bytes, "rotation")


def graph_of(backend: CudaBackend, kernel: Any, case: Case) -> GraphSampler:
    sampler = backend.sampler(kernel, case, SAMPLE_S)
    assert isinstance(sampler, GraphSampler), dict(sampler.details)
    return sampler


class TestDevice:
    def test_it_is_described(self, backend: CudaBackend) -> None:
        info = backend.devices()[0]
        assert DeviceInfo.from_json(json.loads(json.dumps(info.to_json()))) == info
        assert info.name == torch.cuda.get_device_name(0)
        assert info.visible_units == torch.cuda.get_device_properties(0).multi_processor_count
        assert info.llc_bytes is not None
        assert info.llc_bytes > 1 << 20
        assert len(info.uid) == 16
        assert str(torch.cuda.get_device_properties(0).uuid) not in json.dumps(info.to_json())
        assert info.cold_by == "rotation"
        assert "nvml" not in info.details, info.details
        assert info.max_clock_hz is not None
        assert 5e8 < info.max_clock_hz < 5e9
        assert info.driver

    def test_an_index_beyond_the_last_is_refused(self, backend: CudaBackend) -> None:
        with pytest.raises(DeviceNotFound, match="no device 99"):
            CudaBackend().select(99)

    def test_the_environment_has_libraries_as_loaded(self, backend: CudaBackend) -> None:
        run_all(prepared(backend, on_cuda("bf16", 64, 64, 64), 1))
        facts = backend.environment()
        assert facts["torch"].value == torch.__version__
        assert facts["cublas"].value is not None, facts["cublas"].reason
        assert facts["cublaslt"].value is not None, facts["cublaslt"].reason
        assert facts["driver"].value is not None
        assert facts["tunable_op"].value is False
        assert all(fact.value is not None or fact.reason for fact in facts.values())

    def test_free_memory_counts_what_the_allocator_holds(self, backend: CudaBackend) -> None:
        before = backend.memory_free()
        block = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
        during = backend.memory_free()
        del block
        after = backend.memory_free()
        assert before - during == pytest.approx(1 << 30, rel=0.1)
        assert after == pytest.approx(before, rel=0.02)


class TestCorrectness:
    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    @pytest.mark.parametrize("format_name", EVERY_FORMAT)
    def test_every_format(self, backend: CudaBackend, format_name: str, shape: tuple[int, int, int]) -> None:
        case = on_cuda(format_name, *shape)
        kernel = prepared(backend, case, 2)
        run_all(kernel)
        result = verdict(kernel, case)
        assert result.passed, result.reason

    @pytest.mark.parametrize("shape", FREE_SHAPES, ids=str)
    @pytest.mark.parametrize("format_name", ["fp64", "fp32", "tf32", "bf16", "fp16"])
    def test_sizes_that_only_floating_point_takes(
        self, backend: CudaBackend, format_name: str, shape: tuple[int, int, int]
    ) -> None:
        case = on_cuda(format_name, *shape)
        kernel = prepared(backend, case, 1)
        assert fresh_verdict(kernel, case, seed=4).passed

    @pytest.mark.parametrize("layout", ["nn", "tn"])
    @pytest.mark.parametrize("format_name", EVERY_FORMAT)
    def test_other_layouts_are_right_or_unsupported(self, backend: CudaBackend, format_name: str, layout: str) -> None:
        case = on_cuda(format_name, 256, 272, 512, layout=layout)
        kernel = prepared(backend, case, 1)
        try:
            run_all(kernel)
        except RuntimeError as error:
            failure = backend.classify(error)
            assert (failure.outcome, failure.fatal) == (Outcome.UNSUPPORTED, False), failure.reason
            pytest.skip(failure.reason)
        assert verdict(kernel, case).passed

    @pytest.mark.parametrize("distribution", ["uniform", "integer", "zeros", "constant", "outliers"])
    @pytest.mark.parametrize("format_name", EVERY_FORMAT)
    def test_every_distribution(self, backend: CudaBackend, format_name: str, distribution: str) -> None:
        case = on_cuda(format_name, 128, 128, 256, distribution=distribution)
        assert fresh_verdict(prepared(backend, case, 1), case, seed=7).passed

    @pytest.mark.parametrize("format_name", EVERY_FORMAT)
    def test_200_seeds_never_fail_a_sound_kernel(self, backend: CudaBackend, format_name: str) -> None:
        case = on_cuda(format_name, 512, 384, 1024)
        kernel = prepared(backend, case, 1)
        failed = [result.reason for seed in range(200) if not (result := fresh_verdict(kernel, case, seed)).passed]
        assert failed == []

    @pytest.mark.parametrize("format_name", EVERY_FORMAT)
    def test_a_large_product_over_many_seeds(self, backend: CudaBackend, format_name: str) -> None:
        case = on_cuda(format_name, 2048, 2048, 8192)
        kernel = prepared(backend, case, 1)
        failed = [result.reason for seed in range(10) if not (result := fresh_verdict(kernel, case, seed)).passed]
        assert failed == []

    @pytest.mark.parametrize("fast", [True, False])
    def test_fp8_accumulation_is_a_switch(self, backend: CudaBackend, fast: bool) -> None:
        case = on_cuda("fp8_e4m3", 512, 512, 4096, switches={"fp8_fast_accum": fast})
        assert fresh_verdict(prepared(backend, case, 1), case, seed=7).passed

    def test_tf32_is_where_it_is_asked_for_and_nowhere_else(self, backend: CudaBackend) -> None:
        """Two kernels launched in turn keep their own switches."""
        cases = [on_cuda(name, 512, 512, 512) for name in ("tf32", "fp32")]
        kernels = [prepared(backend, case, 1) for case in cases]
        for _ in range(2):
            for kernel in kernels:
                run_all(kernel)
            errors = [verdict(kernel, case).error_rel or 0.0 for kernel, case in zip(kernels, cases, strict=True)]
            assert 1e-4 < errors[0] < 2e-3
            assert errors[1] < 5e-6

    def test_what_the_libraries_are_said_to_refuse_they_do_refuse(self, backend: CudaBackend) -> None:
        """A reason that has stopped being true would hide cases for nothing."""
        for case in (on_cuda("int8", 16, 32, 32), on_cuda("int8", 32, 33, 32), on_cuda("fp8_e4m3", 32, 40, 32)):
            assert backend.supports(case) is not None
            kernel = jobs.prepare(case, cuda_target(0, torch.cuda.get_device_capability(0)), 1, 3)
            with pytest.raises(RuntimeError) as caught:
                run_all(kernel)
            assert backend.classify(caught.value).outcome is Outcome.UNSUPPORTED

    @pytest.mark.parametrize("format_name", EVERY_FORMAT)
    @pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
    def test_every_planted_bug_is_caught_through_the_timed_path(self, backend: CudaBackend, bug: Bug, format_name: str) -> None:
        case = on_cuda(format_name, 160, 144, 512, regime=WARM)
        kernel = bug.wrap(prepared(backend, case, 1))
        run_all(kernel)
        sampler = graph_of(backend, kernel, case)
        assert not fresh_verdict(kernel, case, 11, sampler.replay).passed


class TestGraphs:
    @pytest.mark.parametrize("format_name", EVERY_FORMAT)
    @pytest.mark.parametrize("regime", [COLD, WARM], ids=lambda regime: regime.label)
    def test_a_replay_computes_with_the_data_of_now(self, backend: CudaBackend, format_name: str, regime: Regime) -> None:
        case = on_cuda(format_name, 2048, 2048, 2048, regime=regime)
        kernel = prepared(backend, case, cold_sets(backend, case))
        sampler = graph_of(backend, kernel, case)
        sampler.sample(3)
        kernel.refill(21)
        kernel.poison()
        sampler.replay()
        assert verdict(kernel, case, seed=21).passed

    def test_events_are_nodes_and_kernels_have_names(self, backend: CudaBackend) -> None:
        case = on_cuda("bf16", 512, 512, 512)
        sampler = graph_of(backend, prepared(backend, case, cold_sets(backend, case)), case)
        assert sampler.details["events"] == "in the graph"
        assert sampler.details["kernels"], "no kernel name was found in the driver's dump"
        assert json.loads(json.dumps(dict(sampler.details))) == sampler.details

    def test_samples_last_about_as_long_as_asked_and_agree_with_the_wall_clock(self, backend: CudaBackend) -> None:
        case = on_cuda("bf16", 1024, 1024, 1024, regime=WARM)
        sampler = graph_of(backend, prepared(backend, case, 1), case)
        sampler.sample(10)
        torch.cuda.synchronize()
        began_s = time.perf_counter()
        samples = sampler.sample(100)
        wall_s = time.perf_counter() - began_s
        assert 0.3 * SAMPLE_S < median(samples) / 1e9 < 3 * SAMPLE_S
        assert 0.8 * wall_s < sum(samples) / 1e9 <= 1.01 * wall_s

    def test_in_graph_events_agree_with_events_around_long_replays(self, backend: CudaBackend) -> None:
        case = on_cuda("bf16", 4096, 4096, 4096, regime=WARM)
        kernel = prepared(backend, case, 1)
        inside = per_launch_ns(graph_of(backend, kernel, case))
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        around = []
        for _ in range(10):
            start.record()
            for _ in range(20):
                kernel.enqueue(0)
            end.record()
            torch.cuda.synchronize()
            around.append(start.elapsed_time(end) * 1e6 / 20)
        assert inside == pytest.approx(median(around), rel=0.15)

    def test_sampling_grows_no_reserved_memory(self, backend: CudaBackend) -> None:
        case = on_cuda("fp8_e4m3", 1024, 1024, 1024)
        sampler = graph_of(backend, prepared(backend, case, cold_sets(backend, case)), case)
        sampler.sample(5)
        before = torch.cuda.memory_reserved()
        sampler.sample(50)
        sampler.replay()
        assert torch.cuda.memory_reserved() == before

    def test_closing_gives_memory_back(self, backend: CudaBackend) -> None:
        case = on_cuda("fp32", 4096, 4096, 4096)

        def measure_once() -> None:
            kernel = prepared(backend, case, 2)
            sampler = graph_of(backend, kernel, case)
            sampler.sample(2)
            sampler.close()
            kernel.close()

        measure_once()
        torch.cuda.empty_cache()
        settled = torch.cuda.memory_reserved()
        for _ in range(3):
            measure_once()
            torch.cuda.empty_cache()
        assert torch.cuda.memory_reserved() <= settled + (64 << 20)

    def test_cold_is_slower_than_warm_where_memory_decides(self, backend: CudaBackend) -> None:
        size = (backend.devices()[0].llc_bytes or 0) // 3
        times = {}
        for regime in (COLD, WARM):
            case = calibration_case("read", size, backend="cuda", regime=regime)
            sampler = graph_of(backend, prepared(backend, case, cold_sets(backend, case)), case)
            times[regime.cache] = per_launch_ns(sampler)
        print(times)
        assert times["cold"] > 1.15 * times["warm"]

    def test_sets_that_fit_in_the_cache_are_flushed_instead(self, backend: CudaBackend) -> None:
        case = calibration_case("copy", backend.devices()[0].llc_bytes or 0, backend="cuda")
        flushed = backend.sampler(prepared(backend, case, 2), case, SAMPLE_S)
        assert isinstance(flushed, SpinSampler)
        assert flushed.details["flush_bytes"] > 0
        rotated = graph_of(backend, prepared(backend, case, cold_sets(backend, case)), case)
        flushed_ns, rotated_ns = per_launch_ns(flushed, 64), per_launch_ns(rotated)
        print(flushed_ns, rotated_ns)
        assert flushed_ns == pytest.approx(rotated_ns, rel=0.35, abs=5000)


class TestOtherSamplers:
    def test_the_spin_agrees_with_the_graph_on_a_long_kernel(self, backend: CudaBackend) -> None:
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

    def test_what_cannot_be_captured_falls_back_and_leaves_graphs_usable(self, backend: CudaBackend) -> None:
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

    def test_a_call_includes_the_launch(self, backend: CudaBackend) -> None:
        case = on_cuda("bf16", 256, 256, 256, regime=WARM)
        kernel = prepared(backend, case, 1)
        device_ns = per_launch_ns(graph_of(backend, kernel, case))
        call = backend.sampler(kernel, on_cuda("bf16", 256, 256, 256, regime=CALL), SAMPLE_S)
        assert (call.method, call.launches) == ("host", 1)
        assert per_launch_ns(call, 200) > device_ns


class TestCalibration:
    @pytest.mark.parametrize("op", ["read", "copy", "triad"])
    def test_bandwidth_is_plausible_and_results_are_right(self, backend: CudaBackend, op: str) -> None:
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
    def test_odd_sizes(self, backend: CudaBackend, op: str, size_bytes: int) -> None:
        case = calibration_case(op, size_bytes, backend="cuda")
        assert fresh_verdict(prepared(backend, case, 2), case, seed=6).passed

    def test_an_empty_kernel_is_short_on_the_device_and_longer_to_call(self, backend: CudaBackend) -> None:
        times = {}
        for regime in (WARM, CALL):
            case = calibration_case("empty", 0, backend="cuda", regime=regime)
            sampler = backend.sampler(prepared(backend, case, 1), case, SAMPLE_S)
            times[regime.dispatch] = per_launch_ns(sampler, 100)
        print(times)
        assert 200 < times["device"] < 5_000
        assert times["device"] < times["call"] < 200_000


class TestFailures:
    def test_memory_that_runs_out_is_survived(self, backend: CudaBackend) -> None:
        n = 1 << 15
        sets = backend.memory_free() // (3 * n * n * 8) + 2
        with pytest.raises(torch.OutOfMemoryError) as caught:
            backend.prepare(on_cuda("fp64", n, n, n), sets, 1)
        failure = backend.classify(caught.value)
        assert (failure.outcome, failure.fatal) == (Outcome.OUT_OF_MEMORY, False)
        del caught
        case = on_cuda("bf16", 256, 256, 256)
        assert fresh_verdict(prepared(backend, case, 1), case, seed=2).passed

    @pytest.mark.parametrize(
        "fault",
        [
            "x = torch.zeros(1, device='cuda'); x[torch.full((1,), 10**9, device='cuda')].sum()",
            "a = torch.zeros(1, device='cuda'); torch.cuda._sleep(1000); a[torch.tensor([-5], device='cuda')] = 1",
        ],
    )
    def test_a_lost_context_is_fatal(self, fault: str) -> None:
        script = f"""
import torch
from backends.cuda import CudaBackend
backend = CudaBackend()
backend.select(0)
for attempt in range(2):
    try:
        {fault}
        backend.synchronize()
        print("no error")
    except RuntimeError as error:
        failure = backend.classify(error)
        print(failure.outcome.value, failure.fatal)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
        assert done.stdout.split("\n")[:2] == ["crashed True", "crashed True"], done.stdout + done.stderr[-2000:]


class TestTelemetry:
    def test_a_window_under_load(self, backend: CudaBackend) -> None:
        case = on_cuda("bf16", 4096, 4096, 4096, regime=WARM)
        sampler = graph_of(backend, prepared(backend, case, 1), case)
        telemetry = backend.telemetry()
        telemetry.start()
        began_s = time.perf_counter()
        while time.perf_counter() - began_s < 2.5:
            sampler.sample(50)
        clock_now = telemetry.now("sm_clock")
        channels = telemetry.stop()
        for name, channel in channels.items():
            print(name, channel.unit, len(channel.values), channel.values[-3:], channel.unavailable)
            assert channel.values or channel.unavailable
        limit_hz = backend.devices()[0].max_clock_hz or 0.0
        assert clock_now is not None
        assert 0.1 * limit_hz < clock_now <= 1.01 * limit_hz
        assert len(channels["sm_clock"].values) > 50
        power, energy = channels["power"], channels["energy"]
        assert max(power.values) > 50
        mean_w = sum(power.values) / len(power.values)
        assert energy.values[1] / energy.times_s[1] == pytest.approx(mean_w, rel=0.2)

    def test_the_device_counts_its_own_clock(self, backend: CudaBackend) -> None:
        case = on_cuda("bf16", 4096, 4096, 4096, regime=WARM)
        sampler = graph_of(backend, prepared(backend, case, 1), case)
        telemetry = backend.telemetry()
        telemetry.start()
        for _ in range(2):
            telemetry.mark()
            sampler.sample(50)
            telemetry.mark()
        channel = telemetry.stop()["device_clock"]
        limit_hz = backend.devices()[0].max_clock_hz or 0.0
        print("device clock (MHz):", [round(hz / 1e6) for hz in channel.values])
        assert len(channel.values) == 2
        assert all(0.3 * limit_hz < hz <= 1.01 * limit_hz for hz in channel.values)

    def test_a_short_window_has_no_energy(self, backend: CudaBackend) -> None:
        telemetry = backend.telemetry()
        telemetry.start()
        time.sleep(0.1)
        assert "2 s" in telemetry.stop()["energy"].unavailable

    def test_processes_of_others_can_be_told_or_not(self, backend: CudaBackend) -> None:
        others = backend.telemetry().other_processes()
        print("other processes:", others)
        assert others is None or others >= 0


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
