"""Take recordings on the machine at hand, through the same backend, settling and sampler as a run.

    python -m tests.recordings.record --backend cuda --out tests/recordings

Every case settles as in a run, goes on under load for ``--warm-up`` seconds (10), and is then sampled for ``--seconds`` (60),
at most ``--most`` samples; one line is printed and a file written.  A recording stands for one state of the device: where
temperature or clock is still moving after ten seconds, warm up for longer.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

import psutil

from suite.backend import DeviceInfo, Sampler
from suite.case import Case, Regime, Workload, items
from suite.jobs import registry
from suite.jobs.calibration import working_set_bytes
from suite.measure.collected import take
from suite.measure.load import settle
from suite.measure.regimes import rotating_sets
from suite.settings import MeasureSettings
from suite.worker.serve import made
from tests.recordings.recording import FOLDER, Recording

TARGETS = {"cpu": "backends.cpu:CpuBackend", "cuda": "backends.cuda:CudaBackend"}
NS = 1e-9
CHUNK_S = 0.1  # what one call of the sampler covers: as long as the stopping rule's first look

COLD, WARM, CALL = (
    Regime("cold", "sustained", "device"),
    Regime("warm", "sustained", "device"),
    Regime("warm", "sustained", "call"),
)


class Wanted(NamedTuple):
    """A case to record: its short name, workload and regime, and the backend's options."""

    name: str
    workload: Callable[[DeviceInfo], Workload]
    regime: Regime
    options: dict[str, Any] = {}  # noqa: RUF012


def gemm(format_name: str, m: int, n: int, k: int) -> Callable[[DeviceInfo], Workload]:
    return lambda _info: Workload("gemm", format_name, items({"m": m, "n": n, "k": k, "layout": "nt"}))


def calibration(op: str) -> Callable[[DeviceInfo], Workload]:
    def workload(info: DeviceInfo) -> Workload:
        size = 0 if op == "empty" else working_set_bytes(info.memory_bytes, info.llc_bytes, info.backend == "cpu")
        return Workload("calibration", "fp32", items({"op": op, "bytes": size}))

    return workload


WANTED = {
    "cpu": [
        Wanted("fp32-512-warm", gemm("fp32", 512, 512, 512), WARM),
        Wanted("bf16-512-warm", gemm("bf16", 512, 512, 512), WARM),
        Wanted("fp32-512-cold", gemm("fp32", 512, 512, 512), COLD),
        Wanted("fp32-1024-warm", gemm("fp32", 1024, 1024, 1024), WARM),
        Wanted("fp32-16-rows-call", gemm("fp32", 16, 1024, 1024), CALL),
        Wanted("fp32-512-warm-one-thread", gemm("fp32", 512, 512, 512), WARM, {"threads": 1}),
        Wanted("fp32-256-call-one-thread", gemm("fp32", 256, 256, 256), CALL, {"threads": 1}),
        Wanted("fp32-128-warm-one-thread", gemm("fp32", 128, 128, 128), WARM, {"threads": 1}),
        Wanted("fp32-128-call-one-thread", gemm("fp32", 128, 128, 128), CALL, {"threads": 1}),
        Wanted("read", calibration("read"), WARM),
        Wanted("copy", calibration("copy"), WARM),
        Wanted("empty-device", calibration("empty"), WARM),
        Wanted("empty-call", calibration("empty"), CALL),
    ],
    "cuda": [
        Wanted("bf16-8192-cold", gemm("bf16", 8192, 8192, 8192), COLD),
        Wanted("bf16-4096-cold", gemm("bf16", 4096, 4096, 4096), COLD),
        Wanted("fp16-4096-cold", gemm("fp16", 4096, 4096, 4096), COLD),
        Wanted("fp8-8192-cold", gemm("fp8_e4m3", 8192, 8192, 8192), COLD),
        Wanted("tf32-4096-cold", gemm("tf32", 4096, 4096, 4096), COLD),
        Wanted("fp64-2048-cold", gemm("fp64", 2048, 2048, 2048), COLD),
        Wanted("bf16-512-warm", gemm("bf16", 512, 512, 512), WARM),
        Wanted("bf16-512-cold", gemm("bf16", 512, 512, 512), COLD),
        Wanted("bf16-512-warm-spin", gemm("bf16", 512, 512, 512), WARM, {"sampler": "spin"}),
        Wanted("bf16-512-call", gemm("bf16", 512, 512, 512), CALL),
        Wanted("bf16-16-rows-cold", gemm("bf16", 16, 8192, 8192), COLD),
        Wanted("copy", calibration("copy"), COLD),
        Wanted("read", calibration("read"), COLD),
        Wanted("empty-device", calibration("empty"), WARM),
        Wanted("empty-call", calibration("empty"), CALL),
    ],
}


class Limits(NamedTuple):
    """How long a load runs before its recording, and when that ends: after this time, or with this many samples."""

    warm_up_s: float
    seconds: float
    most: int


def record(wanted: Wanted, backend_name: str, index: int, limits: Limits) -> Recording:
    """Prepare one case as a worker does, settle, and sample for as long as asked."""
    backend = made(TARGETS[backend_name], wanted.options)
    info = backend.select(index)
    case = _case(wanted, info)
    job = registry.find(case.workload.job)
    sets = rotating_sets(case.regime, job.footprint(case.workload), info.llc_bytes, info.cold_by)
    reason = backend.supports(case)
    assert reason is None, reason
    kernel = backend.prepare(case, sets, seed=1)
    for index in range(kernel.sets):
        kernel.enqueue(index)
    backend.synchronize()
    settings = MeasureSettings()
    sampler = backend.sampler(kernel, case, settings.sample_s)
    steady = settle(sampler, backend.telemetry(), settings).steady
    _sample(sampler, limits._replace(seconds=limits.warm_up_s))
    busy_before = _busy_elsewhere_s()
    durations_ns, clocks_khz, wall_s = _sample(sampler, limits)
    busy_s = _busy_elsewhere_s() - busy_before
    recording = Recording(
        name=f"{backend_name}-{wanted.name}",
        device=info.name,
        case=case.title,
        method=sampler.method,
        launches=sampler.launches,
        resolution_s=sampler.resolution_s,
        wall_s=wall_s,
        steady=steady,
        others=round(max(0.0, busy_s) / (wall_s * len(durations_ns)), 3),
        details=dict(sampler.details),
        durations_ns=tuple(durations_ns),
        clocks_khz=tuple(clocks_khz),
    )
    sampler.close()
    kernel.close()
    return recording


def _case(wanted: Wanted, info: DeviceInfo) -> Case:
    workload = wanted.workload(info)
    job = registry.find(workload.job)
    switches = job.switches(job.settings_type(), workload)[0]
    return Case(workload, "library", info.backend, wanted.regime, switches)


def _sample(sampler: Sampler, limits: Limits) -> tuple[list[int], list[int], float]:
    """Samples in calls of about ``CHUNK_S``, the clock over each where it is counted, and the wall time of one."""
    durations_ns: list[int] = []
    clocks_khz: list[int] = []
    count, began_s, per_sample_s = 1, time.monotonic(), 0.0
    while len(durations_ns) < limits.most and time.monotonic() - began_s <= limits.seconds:
        taken = take(sampler, count)
        durations_ns.extend(taken.durations_ns)
        clocks_khz.extend(taken.clocks_khz)
        per_sample_s = (time.monotonic() - began_s) / len(durations_ns)
        count = max(1, min(int(CHUNK_S / per_sample_s), limits.most - len(durations_ns)))
    return durations_ns, clocks_khz if len(clocks_khz) == len(durations_ns) else [], per_sample_s


def _busy_elsewhere_s() -> float:
    """Seconds that all cores were busy with anything but this process, or were taken by other guests of the host."""
    every, own = psutil.cpu_times(), os.times()
    idle_s = every.idle + getattr(every, "iowait", 0.0)
    return sum(every) - idle_s - getattr(every, "guest", 0.0) - getattr(every, "guest_nice", 0.0) - own.user - own.system


def summary(recording: Recording) -> str:
    """One line: size, median, spread between quartiles, distinct values, load."""
    values = recording.durations_ns
    middle = median(values)
    low, _, high = quantiles(values, n=4)
    return (
        f"{recording.name:32} {len(values):7} samples of {middle * NS:.3e} s in {len(values) * recording.wall_s:5.1f} s, "
        f"quartiles {(high - low) / middle:7.3%} apart, {len(set(values)):6} distinct, "
        f"step {_smallest_step_ns(values)} ns, {recording.launches} launches, steady {recording.steady}, "
        f"others on {recording.others:.2f} cores"
    )


def _smallest_step_ns(values: Sequence[int]) -> int:
    """The smallest distance between two different samples: what the timer resolves, where samples are many and short."""
    ordered = sorted(set(values))
    return min((after - before for before, after in pairwise(ordered)), default=0)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.recordings.record", description=__doc__)
    parser.add_argument("--backend", choices=sorted(TARGETS), default="cpu")
    parser.add_argument("--index", type=int, default=0, help="the device's index")
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--only", nargs="*", default=None, help="names of the cases to record (default: all)")
    parser.add_argument("--warm-up", type=float, default=10.0, help="seconds")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--most", type=int, default=30_000)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    for wanted in WANTED[given.backend]:
        if given.only is None or wanted.name in given.only:
            recording = record(wanted, given.backend, given.index, Limits(given.warm_up, given.seconds, given.most))
            path = recording.write(given.out)
            print(f"{summary(recording)}, {path.stat().st_size / 1024:.0f} KiB", flush=True)


if __name__ == "__main__":
    main()
