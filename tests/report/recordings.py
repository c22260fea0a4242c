"""Measurements as a large GPU leaves them: power rises, the clock falls, the driver sets its reasons."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from suite.backend import Channel
from suite.measurement import Check, Measurement, SampleSet, Span
from suite.outcome import Outcome

POLL_S = 0.02
REASONS = ("sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal", "hw_power_brake")
Windows = Sequence[tuple[float, float]]  # (from, to), seconds


def sustained(p50_s: float, seconds: float = 2.0, calls: int = 8) -> Measurement:
    """One window at the power limit; samples in ``calls`` calls of the sampler, each twice the one before."""
    shares = [2.0**index for index in range(calls)]
    edges = [0.001 + (seconds - 0.002) * sum(shares[:index]) / sum(shares) for index in range(calls + 1)]
    return _measured(p50_s, list(pairwise(edges)), _channels([(0.0, seconds)], 0.6, 690.0))


def burst(p50_s: float, windows: int = 5, idle_s: float = 1.0) -> Measurement:
    """Windows of 20 ms from idle."""
    times = [(index * (0.02 + idle_s), index * (0.02 + idle_s) + 0.02) for index in range(windows)]
    return _measured(p50_s, times, _channels(times, 0.02, 410.0))


def alternating(p50_s: float, rounds: int = 12, pause_s: float = 0.35) -> Measurement:
    """Rounds of 0.1 s between which other kernels had their turn."""
    times = [(index * (0.1 + pause_s), index * (0.1 + pause_s) + 0.1) for index in range(rounds)]
    return _measured(p50_s, times, _channels(times, 0.3, 640.0))


def untimed(measured: Measurement) -> Measurement:
    """The same from a store that does not say when samples were taken."""
    data = measured.to_json()
    data["samples"].pop("spans")
    return Measurement.from_json(data)


def _measured(p50_s: float, windows: Windows, telemetry: dict[str, Channel]) -> Measurement:
    durations, spans = [], []
    for began_s, ended_s in windows:
        spans.append(Span(len(durations), began_s, ended_s))
        count = max(1, int((ended_s - began_s) / p50_s))
        durations += [_duration_ns(p50_s, began_s + index * p50_s, len(durations) + index) for index in range(count)]
    stride = max(1, math.ceil(len(durations) / 4096))
    kept = durations[::stride]
    starts = tuple(math.ceil(span.first / stride) for span in spans) if len(windows) > 1 else (0,)
    samples = SampleSet(
        durations_ns=tuple(kept),
        launches=1,
        method="graph",
        resolution_s=1e-9,
        count=len(durations),
        sum_ns=sum(durations),
        min_ns=min(durations),
        stride=stride,
        boundaries=starts,
        details={"sets": 4},
        spans=tuple(spans),
    )
    passed = Check(True, 1.7e-3, 8e-3, 1e-3, 0, 0)
    return Measurement(
        outcome=Outcome.OK,
        samples=samples,
        interval_s=(0.998 * p50_s, 1.002 * p50_s),
        converged=True,
        check_before=passed,
        check_after=passed,
        telemetry=telemetry,
        description={"library": "cuBLAS 13.0", "kernel": "nvjet_tst_256x128_64x4"},
        phases_s={"compile": 1.2, "verify": 0.4, "measure": 3.1},
        peak_memory_bytes=3 * 2**30,
    )


def _duration_ns(p50_s: float, time_s: float, index: int) -> int:
    """Slower as the clock falls, with a little noise and now and then a straggler."""
    noise = 0.004 * math.sin(index * 12.9898) + (0.02 if index % 97 == 5 else 0.0)
    return round(1e9 * p50_s * (1 + 0.03 * (1 - math.exp(-time_s / 0.5)) - 0.02 + noise))


def _channels(windows: Windows, settle_s: float, top_w: float) -> dict[str, Channel]:
    times = tuple(time_s for began_s, ended_s in windows for time_s in _polls(began_s, ended_s))
    since = [time_s - max(began_s for began_s, _ in windows if began_s <= time_s + 1e-9) for time_s in times]
    loads = [1 - math.exp(-(seconds + 0.004) / settle_s) for seconds in since]
    power = tuple(120 + (top_w - 120) * load + 4 * math.sin(index * 1.7) for index, load in enumerate(loads))
    clock = tuple(1.755e9 - 0.36e9 * load * top_w / 700 + 7.5e6 * (index % 3) for index, load in enumerate(loads))
    capped = tuple(float(watts > 0.9 * top_w) for watts in power)
    marks = tuple(ended_s - 1e-4 for _, ended_s in windows)
    counted = tuple(1.62e9 - 0.24e9 * top_w / 700 - 4e6 * index for index in range(len(marks)))
    zeros = (0.0,) * len(times)
    return {
        "sm_clock": Channel("Hz", times, clock),
        "memory_clock": Channel("Hz", times, (3.201e9,) * len(times)),
        "power": Channel("W", times, power),
        "temperature": Channel("C", times, tuple(float(round(41 + 18 * load * top_w / 700)) for load in loads)),
        "throttle": Channel("mask", times, tuple(4.0 * value for value in capped)),
        "memory_used": Channel("bytes", times, (3.2e9,) * len(times)),
        **{f"throttle.{name}": Channel("", times, zeros) for name in REASONS},
        "throttle.sw_power_cap": Channel("", times, capped),
        "energy": Channel("J", (), (), "the window of 0.1 s is under the 2 s that the counter's steps need"),
        "device_clock": Channel("Hz", marks, counted),
    }


def _polls(began_s: float, ended_s: float) -> Iterator[float]:
    count = max(1, int((ended_s - began_s) / POLL_S))
    yield from (began_s + index * POLL_S + 2e-4 for index in range(count))
