"""The results of a selftest on an accelerator that does everything right, to be spoilt by each test in one way."""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from suite.backend import Channel, DeviceInfo
from suite.measurement import Measurement, SampleSet
from suite.outcome import Outcome
from suite.rows import ResultRow
from suite.selftest.taken import Passes, Taken
from suite.telemetry import UNITS
from tests.report.builders import result

MIB = 2**20
LIMIT_W = 700.0
CLOCK_HZ = 1.5e9
MEMORY_BYTES_S = 4.0e12
CACHE_BYTES_S = 9.0e12
FLOP_S = {"bf16": 700e12, "fp8_e4m3": 1300e12}
ELEMENT_BYTES = {"bf16": 2, "fp8_e4m3": 1}
SHAPES = ((8192, 8192, 8192), (4096, 4096, 4096), (2048, 2048, 2048), (16, 3840, 3840), (16, 11008, 11008))
REASONS = ("sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal", "hw_power_brake")
INFO = DeviceInfo(
    backend="cuda",
    index=0,
    name="Testium T1",
    uid="d0d0cafe",
    memory_bytes=140 * 2**30,
    visible_units=132,
    max_clock_hz=1.98e9,
    llc_bytes=60 * MIB,
    power_limit_w=LIMIT_W,
)


def passes() -> Passes:
    """A whole selftest: repeated to 0.2 %, cold where it says cold, 1 % under burst when sustained."""
    first = (
        *base_figures(),
        *(product(*shape, name, cache) for name in FLOP_S for shape in SHAPES for cache in ("cold", "warm")),
    )
    load = tuple(
        product(*SHAPES[0], name, "cold", load, 1.01 if load == "sustained" else 1.0) for name in FLOP_S for load in LOADS
    )
    cold = tuple(slower(taken, 1.003) for taken in first if taken.row.cache == "cold" and taken.row.job == "gemm")
    again = tuple(slower(taken, 1.002) for taken in reversed(first) if taken.row.job == "gemm")
    return Passes(first, load, cold, again)


LOADS = ("burst", "sustained")


def product(m: int, n: int, k: int, name: str, cache: str, load: str = "sustained", factor: float = 1.0) -> Taken:
    """One verified product, as fast as its format or its memory allows; ``factor`` times as long."""
    size = ELEMENT_BYTES[name]
    moved, flops = size * (m * k + k * n) + 2 * m * n, 2 * m * n * k
    from_cache = cache == "warm" and moved <= (INFO.llc_bytes or 0)
    memory_s = moved / (CACHE_BYTES_S if from_cache else MEMORY_BYTES_S)
    p50_s = factor * max(flops / FLOP_S[name], memory_s)
    bound = "compute" if flops / FLOP_S[name] > memory_s else "memory"
    row = result(
        m, n, k, format=name, regime=f"{cache}/{load}/device", bound=bound, compulsory_bytes=moved, clock_hz=CLOCK_HZ,
        power_w=0.9 * LIMIT_W if load == "sustained" else None, steady=True if load == "sustained" else None,
    )  # fmt: skip
    return timed(row, p50_s)


def base_figures() -> tuple[Taken, ...]:
    """Read, copy and triad over 4 GiB, and an empty kernel for each dispatch."""
    nothing: dict[str, Any] = {"format": "fp32", "flops": 0, "pipe": None, "arithmetic_intensity": 0.0, "job": "calibration"}
    memory = []
    for op, rate in (("read", 4.2e12), ("copy", 3.9e12), ("triad", 4.0e12)):
        row = result(**nothing, params={"op": op, "bytes": 2**32}, compulsory_bytes=2**32, bound="memory", case_key=op)
        memory.append(timed(row, 2**32 / rate))
    empty = []
    for dispatch, p50_s in (("device", 1.2e-6), ("call", 6e-6)):
        regime = f"warm/sustained/{dispatch}"
        params = {"op": "empty", "bytes": 0}
        row = result(**nothing, params=params, compulsory_bytes=0, bound="launch", regime=regime, case_key=f"empty {dispatch}")
        empty.append(timed(row, p50_s))
    return (*memory, *empty)


def timed(row: ResultRow, p50_s: float) -> Taken:
    """The row with a median of ``p50_s`` known to 0.1 % either way, and a measurement that says the same."""
    launches = max(1, round(2e-3 / p50_s))
    draw = random.Random(row.case_key)
    durations_ns = tuple(round(p50_s * launches * 1e9 * (1 + 1e-3 * draw.gauss(0, 1))) for _ in range(60))
    samples = SampleSet(durations_ns, launches, "graph", 0.5e-6, 60, sum(durations_ns), min(durations_ns))
    row = replace(
        row,
        p50_s=p50_s,
        interval_s=(p50_s * 0.999, p50_s * 1.001),
        flop_s=row.flops / p50_s,
        bytes_s=row.compulsory_bytes / p50_s,
    )
    return Taken(row, Measurement(Outcome.OK, samples=samples, interval_s=row.interval_s, telemetry=telemetry()))


def telemetry(**values: float) -> dict[str, Channel]:
    """Every channel with one mean; reasons are 0 unless they are given as ``hw_thermal=0.4``."""
    usual = dict.fromkeys(UNITS, 1.0) | {"sm_clock": CLOCK_HZ, "device_clock": CLOCK_HZ, "power": 0.9 * LIMIT_W}
    channels = {
        name: Channel(UNITS[name], (0.0, 1.0), (value, value)) for name, value in {**usual, **values}.items() if name in UNITS
    }
    for name in dict.fromkeys((*REASONS, *(name for name in values if name not in UNITS))):
        share = values.get(name, 0.0)
        channels[f"throttle.{name}"] = Channel("", (0.0, 1.0), (share, share))
    return channels


def slower(taken: Taken, factor: float) -> Taken:
    """The same case, taking ``factor`` times as long."""
    assert taken.row.p50_s is not None
    same = timed(taken.row, taken.row.p50_s * factor)
    return same._replace(measurement=replace(same.measurement, telemetry=taken.measurement.telemetry))


def ended(taken: Taken, outcome: str, reason: str) -> Taken:
    """The same case without a number."""
    nothing = dict.fromkeys(
        ("p50_s", "interval_s", "flop_s", "bytes_s", "clock_hz", "power_w", "steady", "converged", "contended")
    )
    samples = taken.measurement.samples if outcome == Outcome.IMPOSSIBLE else None
    return Taken(
        replace(taken.row, outcome=outcome, reason=reason, **nothing), Measurement(Outcome(outcome), reason, samples=samples)
    )


def with_row(taken: Taken, **fields: Any) -> Taken:
    return taken._replace(row=replace(taken.row, **fields))


def with_telemetry(taken: Taken, channels: Mapping[str, Channel]) -> Taken:
    return taken._replace(measurement=replace(taken.measurement, telemetry=channels))


def with_samples(taken: Taken, **fields: Any) -> Taken:
    samples = taken.measurement.samples
    assert samples is not None
    return taken._replace(measurement=replace(taken.measurement, samples=replace(samples, **fields)))


def altered(
    whole: Passes,
    change: Callable[[Taken], Taken],
    names: Iterable[str] = ("first", "load", "doubled", "again"),
    only: str = "",
) -> Passes:
    """The passes with ``change`` made to every case of those named, or to the ones whose name begins with ``only``."""

    def each(taken: Taken) -> Taken:
        return change(taken) if taken.name.startswith(only) else taken

    return replace(whole, **{name: tuple(map(each, getattr(whole, name))) for name in names})
