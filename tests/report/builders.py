"""Rows, devices and runs for the tests of reports and dashboard: a machine that exists only here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from suite.backend import DeviceInfo, Fact
from suite.case import Workload, items
from suite.hardware.figure import NOT_FOUND
from suite.hardware.spec import HardwareSpec, Memory
from suite.measurement import Measurement
from suite.outcome import Evidence
from suite.roofline import roof
from suite.rows import Calibration, CalibrationHistory, DeviceRow, Fractions, ResultRow, RunInfo
from suite.selftest.record import Selftest
from suite.store.roofs import RoofKey
from tests.report.recordings import sustained

RUN = "2031-05-06T07-08-09-abc123"
UID = "d0d0cafe"
DEVICE = "Testium T1"
PEAKS = {"fp64": 60e12, "fp32": 60e12, "tf32": 480e12, "fp16": 960e12, "bf16": 960e12, "fp8": 1920e12, "int8": 1920e12}
BANDWIDTH = 4.5e12
BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8_e4m3": 1, "int8": 1}
_ids = count(1)


SPEC = HardwareSpec(
    id="testium-t1",
    name="Testium T1",
    vendor="Testium",
    unit_name="unit",
    units=NOT_FOUND,
    memory=Memory(bandwidth_bytes_s=replace(NOT_FOUND, value=BANDWIDTH)),
    peaks={pipe: replace(NOT_FOUND, value=peak) for pipe, peak in PEAKS.items()},
)
CALIBRATION = Calibration(
    read_bytes_s=4.2e12, copy_bytes_s=4.0e12, triad_bytes_s=4.1e12, empty_device_s=1e-6, empty_call_s=1e-5
)


def result(
    m: int = 4096, n: int = 4096, k: int = 4096, *, format: str = "bf16", share: float = 0.7, regime: str = "", **fields: Any
) -> ResultRow:
    """One verified GEMM at ``share`` of the test machine's roof; ``fields`` replace any field of the row."""
    pipe = {"fp8_e4m3": "fp8"}.get(format, format)
    size = BYTES.get(format, 2)
    flops, compulsory = 2 * m * n * k, size * (m * k + k * n) + 2 * m * n
    intensity = flops / compulsory
    rate = share * roof(PEAKS.get(pipe, 1e12), BANDWIDTH, [intensity])[0]
    p50_s = flops / rate
    cache, load, dispatch = (regime or "cold/sustained/device").split("/")
    params = {"m": m, "n": n, "k": k}
    row = ResultRow(
        result_id=next(_ids),
        run=RUN,
        case_key=f"case-{m}-{n}-{k}-{format}-{regime}",
        workload_key=Workload("gemm", format, items(params)).key,
        job="gemm",
        implementation="library",
        backend="cuda",
        device=DEVICE,
        device_uid=UID,
        device_slot=0,
        hardware="testium-t1",
        format=format,
        execution="native",
        params=params,
        semantics={},
        distribution="normal",
        switches={},
        cache=cache,
        load=load,
        dispatch=dispatch,
        evidence="measured",
        attempt=1,
        outcome="ok",
        reason="",
        finished_at="2031-05-06T07:09:00Z",
        flops=flops,
        compulsory_bytes=compulsory,
        arithmetic_intensity=intensity,
        pipe=pipe,
        converged=True,
        steady=True if load == "sustained" else None,
        contended=False,
        bound="compute" if intensity * BANDWIDTH > PEAKS.get(pipe, 1e12) else "memory",
        method="graph",
        count=400,
        p50_s=p50_s,
        p05_s=p50_s * 0.99,
        p95_s=p50_s * 1.02,
        min_s=p50_s * 0.98,
        interval_s=(p50_s * 0.998, p50_s * 1.002),
        flop_s=rate,
        bytes_s=compulsory / p50_s,
        fractions=Fractions(share, share * 0.92, min(1.0, share * 1.3), min(1.0, share * 1.05)),
        clock_hz=1.41e9,
        power_w=690.0,
        throttle="",
        error_rel=1.7e-3,
        tolerance=8e-3,
    )
    return replace(row, **fields)


def failed(outcome: str, reason: str, **fields: Any) -> ResultRow:
    """A case that ended without a time."""
    empty = dict.fromkeys(("p50_s", "p05_s", "p95_s", "min_s", "interval_s", "flop_s", "bytes_s", "clock_hz", "power_w"))
    nothing = dict.fromkeys(("converged", "steady", "contended", "bound", "count", "error_rel", "throttle"))
    return result(
        **{**empty, **nothing, "fractions": Fractions(None, None, None, None), **fields}, outcome=outcome, reason=reason
    )


def sweep() -> list[ResultRow]:
    """What a quick experiment leaves: seven formats, four regimes, two cases that failed, one in doubt."""
    sizes = (512, 1024, 2048, 4096, 8192)
    shares = {512: 0.12, 1024: 0.38, 2048: 0.61, 4096: 0.7, 8192: 0.73}
    rows = [result(s, s, s, format=name, share=shares[s]) for name in BYTES for s in sizes]
    rows += [result(m, 8192, 8192, format="bf16", share=0.86) for m in (1, 16, 64, 256)]
    rows += [
        result(s, s, s, format=name, share=shares[s] * 1.2, regime="cold/burst/device")
        for name in ("bf16", "fp16")
        for s in (4096, 8192)
    ]
    rows += [result(2048, 2048, 2048, format=name, share=0.66, regime="warm/sustained/device") for name in BYTES]
    rows += [result(512, 512, 512, share=0.02, regime="warm/sustained/call", bound="launch")]
    rows += [result(1536, 1536, 1536, share=0.5, converged=False)]
    rows += [failed("incorrect", "error 3.1e-01 above the tolerance 8.0e-03 on tile (0, 512)", m=96, n=96, k=96)]
    rows += [failed("out_of_memory", "needs 171 GB, 139 GB free", m=131072, n=131072, k=8192, format="fp32")]
    return rows


def device(**fields: Any) -> DeviceRow:
    info = DeviceInfo(
        backend="cuda",
        index=0,
        name=DEVICE,
        uid=UID,
        memory_bytes=150 * 2**30,
        architecture="sm_90",
        visible_units=132,
        max_clock_hz=1.98e9,
        llc_bytes=60 * 2**20,
        power_limit_w=700.0,
        driver="580.159",
    )
    return replace(DeviceRow(0, info, "testium-t1", "exact name", SPEC.to_json()), **fields)


def run_info(**fields: Any) -> RunInfo:
    info = RunInfo(
        run=RUN,
        experiment="quick",
        status="complete",
        started_at="2031-05-06T07:08:09Z",
        finished_at="2031-05-06T07:20:00Z",
        planned=60,
        finished=60,
        argv=("/opt/venv/bin/roofbench", "run", "experiment=quick"),
        overrides=("experiment=quick", "jobs.gemm.shapes=[512x512x512, 4096]", "store.url=/home/ada/results.db"),
        note="",
        version="0.1.0",
        commit="3b499843b49984",
        dirty=False,
        config={"experiment": "quick", "measure": {"target": 0.005}, "store": {"url": "/home/ada/results.db"}, "seed": 0},
    )
    return replace(info, **fields)


ENVIRONMENT = {
    "host": {
        "hostname": Fact.measured("lovelace-node7"),
        "cpu": Fact.measured("Test CPU, 2 cores"),
        "kernel": Fact.measured("Linux 6.1 built on lovelace-node7"),
        "container_image": Fact.unavailable("not in a container"),
    },
    "libraries": {"torch": Fact.measured("2.11.0+cu130"), "path": Fact.measured("/home/ada/env/lib/libcublas.so.13")},
}


BEFORE = "2031-05-05T07-08-09-def456"  # the run that measured the base figures


def base_rows(base: Calibration) -> list[ResultRow]:
    """Calibration results of an earlier run, with the figures of ``base``; those disturbed were contended."""
    found = []
    for name in ("read_bytes_s", "copy_bytes_s", "triad_bytes_s", "empty_device_s", "empty_call_s"):
        if (value := getattr(base, name)) is not None:
            found.append(
                base_row(name, value, run=BEFORE, finished_at="2031-05-05T07:09:00Z", contended=name in base.disturbed)
            )
    return found


def base_row(name: str, value: float, **fields: Any) -> ResultRow:
    """One calibration result, by the field of ``Calibration`` that it gives."""
    is_empty = name.startswith("empty")
    op, dispatch = ("empty", name.split("_")[1]) if is_empty else (name.partition("_")[0], "device")
    p50_s = value if is_empty else 2**32 / value
    nothing: dict[str, Any] = {"flops": 0, "pipe": None, "flop_s": 0.0, "arithmetic_intensity": 0.0, "format": "fp32"}
    row = result(job="calibration", regime=f"cold/sustained/{dispatch}", **nothing)
    known: dict[str, Any] = {"p50_s": p50_s, "bytes_s": 0.0 if is_empty else value, "interval_s": (p50_s * 0.99, p50_s * 1.01)}
    return replace(row, params={"op": op, "bytes": 0 if is_empty else 2**32}, **{**known, **fields})


@dataclass(frozen=True)
class FakeReader:
    """Answers the queries of reports and views from memory."""

    rows: tuple[ResultRow, ...] = ()
    infos: tuple[RunInfo, ...] = field(default_factory=lambda: (run_info(),))
    device_rows: tuple[DeviceRow, ...] = field(default_factory=lambda: (device(),))
    facts: Mapping[str, Mapping[str, Fact]] = field(default_factory=lambda: ENVIRONMENT)
    base: Calibration = CALIBRATION
    tested: tuple[Selftest, ...] = ()
    measured: Callable[[ResultRow], Measurement] = lambda row: sustained(row.p50_s or 1.0, 40 * (row.p50_s or 1.0))

    def runs(self) -> list[RunInfo]:
        return list(self.infos)

    def resolve(self, run: str) -> RunInfo:
        return self.infos[0] if run == "latest" else next(info for info in self.infos if info.run == run)

    def results(
        self, run: str | None = None, *, job: str | None = None, device_uid: str | None = None, evidence: str | None = None
    ) -> list[ResultRow]:
        rows = [*self.rows, *(base_rows(self.base) if run is None else ())]
        wanted = {"run": run, "job": job, "device_uid": device_uid, "evidence": evidence}
        return [row for row in rows if all(value in (None, getattr(row, name)) for name, value in wanted.items())]

    def devices(self, run: str) -> list[DeviceRow]:
        return list(self.device_rows)

    def measurement(self, result_id: int) -> Measurement:
        (row,) = (row for row in self.rows if row.result_id == result_id)
        return self.measured(row)

    def environment(self, run: str) -> Mapping[str, Mapping[str, Fact]]:
        return self.facts

    def calibrations(self, device_uid: str, backend: str, evidence: Evidence) -> CalibrationHistory:
        return CalibrationHistory((("", self.base),))

    def selftests(self, device_uid: str | None = None) -> Sequence[Selftest]:
        return [each for each in self.tested if each.device_uid == device_uid]

    def empirical_bandwidth(self, device_uid: str, evidence: Evidence) -> float | None:
        return self.base.best_bytes_s

    def empirical_roofs(self, evidence: Evidence) -> dict[RoofKey, float]:
        best: dict[RoofKey, float] = {}
        for row in self.rows:
            if row.evidence == evidence and row.outcome == "ok" and row.pipe and row.flop_s:
                key = RoofKey(row.device_uid, row.pipe, row.load)
                best[key] = max(best.get(key, 0.0), row.flop_s)
        return best
