"""The CPU backend as the worker sees it."""

import json
from dataclasses import replace
from typing import Any

import pytest
import torch

from backends.cpu import CpuBackend
from backends.host import cpuinfo
from suite.backend import DeviceInfo
from suite.case import Regime
from suite.errors import DeviceNotFound, UsageError
from suite.measure.spine import Order, Trial
from suite.outcome import Evidence, Outcome
from suite.settings import MeasureSettings
from tests.backends.cases import CALL, COLD, WARM, gemm_case, run_all, tolerance_of, verdict


def test_the_device_is_described_from_what_the_machine_says() -> None:
    (info,) = CpuBackend().devices()
    assert DeviceInfo.from_json(json.loads(json.dumps(info.to_json()))) == info
    assert info.backend == "cpu"
    assert info.name
    assert info.memory_bytes > 0
    assert info.visible_units is not None
    assert info.visible_units >= 1
    assert info.cold_by == "flush"
    assert len(info.uid) == 16


def test_threads_are_set_and_recorded() -> None:
    backend = CpuBackend({"threads": 1})
    backend.select(0)
    assert torch.get_num_threads() == 1
    facts = backend.environment()
    assert facts["torch_threads"].value == 1
    assert facts["torch"].value == torch.__version__
    assert all(fact.value is not None or fact.reason for fact in facts.values())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"thread": 2}, "did you mean 'threads'"),
        ({"threads": 0}, "threads=0"),
        ({"threads": True}, "threads=True"),
        ({"flush_factor": -1}, "flush_factor=-1"),
        ({"flush_factor": 1.9}, "flush_factor=1.9 would leave data in the cache .* at least 2"),
        ({"flush_factor": 1e9}, "flush_factor=1e.09 last-level caches .* more than 64"),
        ({"flush_factor": float("nan")}, "flush_factor=nan is not a number above 0; the default is 2"),
        ({"telemetry_period_s": "fast"}, "telemetry_period_s='fast' is not a number from 0.01 to 60"),
        ({"telemetry_period_s": 0}, "telemetry_period_s=0 is not a number from 0.01 to 60, .*; the default is 0.02"),
        ({"telemetry_period_s": 1e-12}, "telemetry_period_s=1e-12 .* hold up the launches that are timed"),
        ({"telemetry_period_s": 0.0099}, "telemetry_period_s=0.0099 is not a number from 0.01 to 60"),
        ({"telemetry_period_s": 1e9}, "from 0.01 to 60, as a case is over before a second reading; the default"),
        (
            {"threads": cpuinfo.processors().most_threads + 1},
            r"threads=\d+ is more than the .* that this process may use, .*; set at most \d+, or leave it out",
        ),
    ],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        CpuBackend(options)


@pytest.mark.parametrize(
    ("quota", "threads", "words"),
    [
        (1.5, 2, "threads=2 is more than the quota of 1.5 CPUs that this process may use, .*; set at most 1,"),
        (0.5, 2, "quota of 0.5 CPUs .*; set at most 1,"),
        (None, 3, "threads=3 is more than the 2 logical CPUs that this process may use, .*; set at most 2,"),
        (2.0, 2, ""),
        (9.0, 2, ""),
        (0.5, 1, ""),
    ],
)
def test_threads_have_a_processor_each_within_the_quota(
    monkeypatch: pytest.MonkeyPatch, quota: float | None, threads: int, words: str
) -> None:
    allowed(monkeypatch, quota)
    if not words:
        assert CpuBackend({"threads": threads}).devices()
        return
    with pytest.raises(UsageError, match=words):
        CpuBackend({"threads": threads})


def allowed(monkeypatch: pytest.MonkeyPatch, quota: float | None = None) -> None:
    """This machine, of whose processors two may be used."""
    found = replace(cpuinfo.processors(), cpus=(0, 1), quota=quota)
    monkeypatch.setattr(cpuinfo, "processors", lambda: found)


def test_fewer_openmp_threads_than_are_measured_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch goes on splitting a product among threads that were never started, and leaves parts of it unwritten."""
    allowed(monkeypatch)
    monkeypatch.setenv("OMP_THREAD_LIMIT", "1")
    with pytest.raises(UsageError, match=r"OMP_THREAD_LIMIT=1 allows fewer threads than the 2 .*options.threads=1"):
        CpuBackend({"threads": 2})
    assert CpuBackend({"threads": 1}).devices()


def test_a_thread_limit_that_openmp_does_not_read_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed(monkeypatch)
    monkeypatch.setenv("OMP_THREAD_LIMIT", "\u0661")  # a one in another script
    assert CpuBackend({"threads": 2}).devices()


@pytest.mark.parametrize(("asked", "refused"), [("COMPATIBLE", True), ("AVX2,STRICT", True), ("auto", False), ("OFF", False)])
def test_mkl_is_not_kept_from_what_the_cpu_can_do(monkeypatch: pytest.MonkeyPatch, asked: str, refused: bool) -> None:
    """COMPATIBLE makes a product in fp32 three times slower."""
    monkeypatch.setenv("MKL_CBWR", asked)
    if not refused:
        assert CpuBackend({"threads": 1}).devices()
        return
    with pytest.raises(UsageError, match=f"MKL_CBWR={asked} keeps MKL .* unset it, or set MKL_CBWR=AUTO"):
        CpuBackend({"threads": 1})


def test_there_is_one_cpu() -> None:
    with pytest.raises(DeviceNotFound, match="not 1"):
        CpuBackend().select(1)


@pytest.fixture
def small_cache(monkeypatch: pytest.MonkeyPatch) -> int:
    """A machine whose last-level cache is 1 MiB: to flush the host's own takes longer than all else here."""
    found = replace(cpuinfo.processors(), llc_bytes=1 << 20)
    monkeypatch.setattr(cpuinfo, "processors", lambda: found)
    return 1 << 20


def test_a_case_from_start_to_end(small_cache: int) -> None:
    backend = CpuBackend({"threads": 1})
    backend.select(0)
    assert backend.evidence is Evidence.MEASURED
    case = gemm_case("bf16", 64, 48, 80, regime=COLD)
    assert backend.supports(case) is None
    free = backend.memory_free()
    assert 0 < free <= backend.devices()[0].memory_bytes
    kernel = backend.prepare(case, 2, seed=1)
    run_all(kernel)
    backend.synchronize()
    assert verdict(kernel, case).passed
    sampler = backend.sampler(kernel, case, 0.001)
    assert len(sampler.sample(4)) == 4
    assert sampler.details["flush_bytes"] >= 2 * small_cache
    telemetry = backend.telemetry()
    telemetry.start()
    channels = telemetry.stop()
    assert all(channel.values or channel.unavailable for channel in channels.values())


@pytest.mark.parametrize("regime", [COLD, WARM, CALL], ids=lambda regime: regime.label)
def test_the_measuring_spine_takes_it(small_cache: int, regime: Regime) -> None:
    backend = CpuBackend({"threads": 1})
    backend.select(0)
    case = gemm_case("int8", 64, 64, 64, regime=regime)
    settings = MeasureSettings(min_time_s=0.01, max_time_s=0.2, steady_timeout_s=0.05, steady_window_s=0.02)
    trial = Trial(backend, case, Order(1, tolerance_of(case), 5, 1), settings, lambda phase: None)
    assert trial.prepare() is None
    trial.measure(0)
    measurement = trial.finish()
    trial.close()
    assert measurement.outcome is Outcome.OK, measurement.reason
    assert json.dumps(measurement.to_json())


def test_a_second_flush_buffer_is_not_made(small_cache: int) -> None:
    backend = CpuBackend({"threads": 1})
    backend.select(0)
    case = gemm_case("fp32", 8, 8, 8)
    made = []
    for _ in range(2):
        backend.sampler(backend.prepare(case, 1, seed=1), case, 0.001).sample(1)
        made.append(backend._flush)
    assert made[0] is made[1]


@pytest.mark.parametrize("factor", [2.0, 4.0])
def test_a_flush_is_as_many_caches_as_asked(small_cache: int, factor: float) -> None:
    backend = CpuBackend({"threads": 1, "flush_factor": factor})
    backend.select(0)
    assert factor * small_cache <= backend._flush.size_bytes < (factor + 0.5) * small_cache
