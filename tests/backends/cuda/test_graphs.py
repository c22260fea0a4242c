"""Timing by graphs of rotated copies."""

import json
import time
from statistics import median

import pytest
import torch

from backends.cuda import CudaBackend
from backends.torch.cuda_spin import SpinSampler
from suite.case import Regime
from tests.backends.cases import EVERY_FORMAT, calibration_case, verdict
from tests.backends.cuda.helpers import (
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


@pytest.mark.parametrize("format_name", EVERY_FORMAT)
@pytest.mark.parametrize("regime", [COLD, WARM], ids=lambda regime: regime.label)
def test_a_replay_computes_with_the_data_of_now(backend: CudaBackend, format_name: str, regime: Regime) -> None:
    case = on_cuda(format_name, 2048, 2048, 2048, regime=regime)
    kernel = prepared(backend, case, cold_sets(backend, case))
    sampler = graph_of(backend, kernel, case)
    sampler.sample(3)
    kernel.refill(21)
    kernel.poison()
    sampler.replay()
    assert verdict(kernel, case, seed=21).passed


def test_events_are_nodes_and_kernels_have_names(backend: CudaBackend) -> None:
    case = on_cuda("bf16", 512, 512, 512)
    sampler = graph_of(backend, prepared(backend, case, cold_sets(backend, case)), case)
    assert sampler.details["events"] == "in the graph"
    assert sampler.details["kernels"], "no kernel name was found in the driver's dump"
    assert json.loads(json.dumps(dict(sampler.details))) == sampler.details


def test_a_graph_keeps_what_libraries_work_in_while_another_is_made(backend: CudaBackend) -> None:
    """A product that splits its inner dimension works in a workspace, which torch frees for the next capture."""
    case = on_cuda("bf16", 16, 15616, 15616, regime=COLD)
    kernel = prepared(backend, case, 3)
    sampler = graph_of(backend, kernel, case)
    if not sampler.details["workspace_bytes"]:
        pytest.skip("this product works in no workspace here")
    assert sampler.details["workspaces"] == 3
    other = on_cuda("fp16", 8192, 8192, 8192, regime=COLD)
    beside = graph_of(backend, prepared(backend, other, 2), other)
    torch.full((1 << 30,), 255, dtype=torch.uint8, device="cuda")  # whatever is free holds no zeros now
    kernel.poison()
    beside.sample(2)
    sampler.replay()
    beside.replay()
    assert verdict(kernel, case, seed=3).passed


@pytest.mark.alone
def test_samples_last_about_as_long_as_asked_and_agree_with_the_wall_clock(backend: CudaBackend) -> None:
    case = on_cuda("bf16", 1024, 1024, 1024, regime=WARM)
    sampler = graph_of(backend, prepared(backend, case, 1), case)
    sampler.sample(10)
    torch.cuda.synchronize()
    began_s = time.perf_counter()
    samples = sampler.sample(100)
    wall_s = time.perf_counter() - began_s
    assert 0.3 * SAMPLE_S < median(samples) / 1e9 < 3 * SAMPLE_S
    assert 0.8 * wall_s < sum(samples) / 1e9 <= 1.01 * wall_s


@pytest.mark.alone
def test_in_graph_events_agree_with_events_around_long_replays(backend: CudaBackend) -> None:
    case = on_cuda("bf16", 4096, 4096, 4096, regime=WARM)
    kernel = prepared(backend, case, 1)
    sampler = graph_of(backend, kernel, case)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    ratios = []
    for _ in range(10):  # in turns: under the power limit the clock is another from one moment to the next
        inside = per_launch_ns(sampler)
        start.record()
        for _ in range(20):
            kernel.enqueue(0)
        end.record()
        torch.cuda.synchronize()
        ratios.append(start.elapsed_time(end) * 1e6 / 20 / inside)
    assert median(ratios) == pytest.approx(1, rel=0.1)


def test_sampling_grows_no_reserved_memory(backend: CudaBackend) -> None:
    case = on_cuda("fp8_e4m3", 1024, 1024, 1024)
    sampler = graph_of(backend, prepared(backend, case, cold_sets(backend, case)), case)
    sampler.sample(5)
    before = torch.cuda.memory_reserved()
    sampler.sample(50)
    sampler.replay()
    assert torch.cuda.memory_reserved() == before


def test_closing_gives_memory_back(backend: CudaBackend) -> None:
    case = on_cuda("fp32", 4096, 4096, 4096)

    def measure_once() -> None:
        kernel = prepared(backend, case, cold_sets(backend, case))
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


@pytest.mark.alone
def test_cold_is_slower_than_warm_where_memory_decides(backend: CudaBackend) -> None:
    size = (backend.devices()[0].llc_bytes or 0) // 3
    times = {}
    for regime in (COLD, WARM):
        case = calibration_case("read", size, backend="cuda", regime=regime)
        sampler = graph_of(backend, prepared(backend, case, cold_sets(backend, case)), case)
        times[regime.cache] = per_launch_ns(sampler)
    print(times)
    assert times["cold"] > 1.15 * times["warm"]


@pytest.mark.alone
def test_sets_that_fit_in_the_cache_are_flushed_instead(backend: CudaBackend) -> None:
    case = calibration_case("copy", backend.devices()[0].llc_bytes or 0, backend="cuda")
    flushed = backend.sampler(prepared(backend, case, 2), case, SAMPLE_S)
    assert isinstance(flushed, SpinSampler)
    assert flushed.details["flush_bytes"] > 0
    rotated = graph_of(backend, prepared(backend, case, cold_sets(backend, case)), case)
    flushed_ns, rotated_ns = per_launch_ns(flushed, 64), per_launch_ns(rotated)
    print(flushed_ns, rotated_ns)
    assert flushed_ns == pytest.approx(rotated_ns, rel=0.35, abs=5000)
