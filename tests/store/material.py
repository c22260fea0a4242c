"""Runs, planned cases and measurements as a sweep hands them to the store."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from suite.backend import Channel, DeviceInfo, Fact
from suite.case import Case, Regime, Workload, items
from suite.jobs.calibration import CalibrationJob
from suite.measurement import Check, Measurement, SampleSet, Span
from suite.outcome import Evidence, Outcome
from suite.planned import PlannedCase
from suite.roofline import FORMULAS_VERSION, Summary
from suite.rows import DeviceRow
from suite.store.writer import Record, RunStart
from suite.work import Work

COLD = Regime("cold", "sustained", "device")
START = datetime(2026, 11, 29, 18, 30, tzinfo=UTC)


def device(slot: int = 0, uid: str = "a1b2", backend: str = "cuda", **info: Any) -> DeviceRow:
    known = DeviceInfo(backend, slot, "NVIDIA H200", uid, 150_000_000_000, llc_bytes=60 * 2**20, **info)
    return DeviceRow(slot, known, "nvidia-h200-sxm5-141gb", "exact name", None)


def run_start(*devices: DeviceRow, **fields: Any) -> RunStart:
    given: dict[str, Any] = {
        "experiment": "quick",
        "config": {"experiment": "quick", "seed": 7, "device": "all"},
        "argv": ["roofbench", "run"],
        "overrides": ["experiment=quick"],
        "note": "",
        "version": "0.1.0",
        "commit": "3b49984",
        "dirty": False,
        "planned": 3,
        "devices": devices or (device(),),
        "environment": {"host": {"cpu": Fact.measured("EPYC"), "rapl": Fact.unavailable("no msr")}},
    }
    return RunStart(**{**given, **fields})


def case(number: int = 0, regime: Regime = COLD, format: str = "bf16", implementation: str = "library") -> Case:
    workload = Workload("gemm", format, items({"m": 128 * (number + 1), "n": 4096, "k": 4096, "layout": "nt"}))
    return Case(workload, implementation, "cuda", regime, items({"tf32": False}))


def calibration_case(op: str, regime: Regime = COLD) -> Case:
    return Case(Workload("calibration", "fp32", items({"op": op, "bytes": 2**32})), "library", "cuda", regime)


def planned(case_: Case | None = None, slot: int = 0, work: Work | None = None) -> PlannedCase:
    case_ = case_ or case()
    if work is None and case_.workload.job == "calibration":
        work = CalibrationJob().work(case_.workload)
    elif work is None:
        m = int(dict(case_.workload.params).get("m", 0))
        work = Work(2 * m * 4096 * 4096, 2 * (2 * m * 4096 + 4096 * 4096), case_.workload.format, None)
    return PlannedCase(slot, 0, case_, work, 0.004, 3, 2**30, 1.5)


def sample_set(count: int = 200, base_ns: int = 20_000) -> SampleSet:
    durations = tuple(base_ns + (i * 7919) % 331 for i in range(count))
    starts, spans = tuple(range(0, count, 10)), (Span(0, 0.0001, 0.0013), Span(count // 2, 0.1 + 1 / 3, 0.5))
    figures = {"count": count, "sum_ns": sum(durations), "min_ns": min(durations), "median_ns": median(durations)}
    more: dict[str, Any] = {"boundaries": starts, "details": {"sets": 3}, "spans": spans, **figures}
    return SampleSet(durations, 10, "graph", 1e-9, **more)


def counted(samples: SampleSet | None = None) -> Measurement:
    """A measurement whose clock was counted over every sample."""
    plain = samples or sample_set()
    clocks_khz = tuple(1_330_000 + 7_500 * (i % 7) for i in range(len(plain.durations_ns)))
    known = replace(plain, clocks_khz=clocks_khz, median_cycles=26_700.125)
    return measurement(samples=known, interval_cycles=(2669.0, 2671.5))


def telemetry(points: int = 100) -> dict[str, Channel]:
    times = tuple(0.02 * i + 0.00013 * (i % 7) for i in range(points))
    return {
        "sm_clock": Channel("Hz", times, tuple(1.63e9 - 7.5e6 * (i % 11) for i in range(points))),
        "memory_clock": Channel("Hz", times, (3.2e9,) * points),
        "power": Channel("W", times, tuple(640.0 + 0.731 * ((i * i) % 83) for i in range(points))),
        "temperature": Channel("C", times, tuple(58.0 + i // 20 for i in range(points))),
        "memory_used": Channel("bytes", times, (2.0**33,) * points),
        "energy": Channel("J", (), (), "no counter on this device"),
    }


def measurement(outcome: Outcome = Outcome.OK, samples: SampleSet | None = None, **fields: Any) -> Measurement:
    if outcome not in (Outcome.OK, Outcome.IMPOSSIBLE):
        return Measurement(outcome, **{"reason": "the device does not offer it", **fields})
    check = Check(True, 0.0017, 0.004, 0.0021, 0, 0)
    given: dict[str, Any] = {
        "samples": samples or sample_set(),
        "interval_s": (2.0e-6, 2.01e-6),
        "converged": True,
        "steady": True,
        "contended": False,
        "check_before": check,
        "check_after": check,
        "telemetry": telemetry(),
        "description": {
            "library": "cuBLASLt 13.1",
            "kernels": ["nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNT"],
            "tiles": [128, 256],
        },
        "phases_s": {"compile": 1.25, "verify": 0.5, "measure": 2.0},
        "peak_memory_bytes": 2**31,
    }
    return Measurement(outcome, **{**given, **fields})


def summary(flop_s: float = 6.6e14, bytes_s: float = 3.1e12, p50_s: float = 2.0e-6, **fields: Any) -> Summary:
    given: dict[str, Any] = {
        "formulas_version": FORMULAS_VERSION, "bound": "compute", "count": 200, "p50_s": p50_s, "p05_s": p50_s * 0.99,
        "p95_s": p50_s * 1.02, "min_s": p50_s * 0.98, "interval_low_s": p50_s * 0.998, "interval_high_s": p50_s * 1.002,
        "flop_s": flop_s, "bytes_s": bytes_s, "fraction_spec": 0.667, "fraction_boost": 0.617, "fraction_at_clock": 0.92,
        "clock_hz": 1.336e9, "energy_j": None, "power_w": 691.0, "throttle": "power_cap 98%",
        "quantisation_error": 0.0017,
    }  # fmt: skip
    return Summary(**{**given, **fields})


def record(planned_: PlannedCase | None = None, measured: Measurement | None = None, **fields: Any) -> Record:
    measured = measured or measurement()
    derived = summary() if measured.samples is not None else None
    given: dict[str, Any] = {
        "summary": derived,
        "evidence": Evidence.MEASURED,
        "started_at": START,
        "finished_at": START + timedelta(seconds=4.123456),
    }
    given, planned_ = {**given, **fields}, planned_ or planned()
    if given["summary"] is not None and not planned_.work.flops:
        given["summary"] = replace(given["summary"], flop_s=0.0)
    return Record(planned_, measured, **given)
